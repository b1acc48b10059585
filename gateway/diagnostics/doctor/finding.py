"""The finding of a probe, and the report of all findings, which `dragoman doctor --json` prints."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import EMPTY

# The version of the report's form.
FORMAT: Final = 1

# `todo`: a request of some kind fails or differs, and there is something to do; `broken`: the backend cannot be used
# like this; `skipped`: it was not tried; `crashed`: the probe itself failed, which is a fault of the gateway.
Verdict: TypeAlias = Literal["ok", "todo", "broken", "skipped", "crashed"]
# Fields of a profile. (Any: msgspec cannot resolve a type that names itself in another module.)
Changes: TypeAlias = Mapping[str, Any]


_SLOW: Final = (
    "it is not known whether it works: a model that is loaded first or computes slowly needs more time; ask again, or "
    "raise timeouts.first_byte of the backend"
)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The finding of one probe.

    `detail` is one sentence, `advice` what to do, `evidence` the backend's own words. `remark`: the verdict is `ok`,
    but the backend does something unusual, which the gateway mends. `changes` are the fields of a profile that mend a
    `todo`; they were tried. `rule` is the rule of the history by which the backend refused, where its words are known,
    or `tools`: it refuses those. `facts` are what was found of the model, by the paths of keys in its entry of
    settings.json, such as `facts.images`. `undecided`: no answer came in time, which says nothing of what can be done.
    """

    verdict: Verdict
    detail: str = ""
    advice: str = ""
    evidence: str = ""
    remark: bool = False
    changes: Changes = EMPTY
    rule: str = ""
    facts: Changes = EMPTY
    undecided: bool = False


class Checked(msgspec.Struct, frozen=True):
    """A probe by its id and name, and its finding."""

    id: str
    name: str
    finding: Finding


class Suggestion(msgspec.Struct, frozen=True):
    """A key of settings.json by its path, and the value to set. (Any: JSON.)"""

    path: tuple[str, ...]
    value: Any


class Section(msgspec.Struct, frozen=True):
    """The findings about one thing: the machine, or a backend by its name. `about` describes it in a few words.

    `can` and `cannot` name features. `suggestions` mend what was found.
    """

    name: str
    about: str
    findings: tuple[Checked, ...]
    can: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    def having(self, *verdicts: Verdict) -> tuple[Checked, ...]:
        """Returns those with one of these verdicts."""
        return tuple(one for one in self.findings if one.finding.verdict in verdicts)


class Report(msgspec.Struct, frozen=True):
    """The report that `--json` prints."""

    format: int
    gateway: str
    sections: tuple[Section, ...]

    def status(self, strict: bool) -> int:
        """Returns the exit status: 1 for anything broken or crashed, with `strict` also for a `todo`, else 0."""
        faulty: tuple[Verdict, ...] = ("broken", "crashed", "todo") if strict else ("broken", "crashed")
        return 1 if any(section.having(*faulty) for section in self.sections) else 0


def ok(detail: str = "", facts: Changes = EMPTY) -> Finding:
    """Returns the finding of something in order."""
    return Finding("ok", detail, facts=facts)


def remark(detail: str, evidence: str = "", rule: str = "") -> Finding:
    """Returns the finding of something unusual that does no harm."""
    return Finding("ok", detail, evidence=evidence, remark=True, rule=rule)


def todo(
    detail: str, advice: str = "", evidence: str = "", changes: Changes = EMPTY, rule: str = "", facts: Changes = EMPTY
) -> Finding:
    """Returns the finding of something that somebody should do or know."""
    return Finding("todo", detail, advice, evidence, changes=changes, rule=rule, facts=facts)


def broken(detail: str, advice: str = "", evidence: str = "") -> Finding:
    """Returns the finding of something that does not work."""
    return Finding("broken", detail, advice, evidence)


def untold(error: str) -> Finding:
    """Returns the finding of a question that was not answered in time."""
    return Finding("todo", f"no answer in time: {error}", _SLOW, undecided=True)


def skipped(reason: str, facts: Changes = EMPTY) -> Finding:
    """Returns the finding of what was not tried, or of what the backend does not have."""
    return Finding("skipped", reason, facts=facts)


def crashed(error: Exception) -> Finding:
    """Returns the finding of a probe that failed itself."""
    return Finding("crashed", f"{type(error).__name__}: {error}", "this is a fault of the gateway: report it")
