"""Finds what a provider's prompt cache cannot serve of a request, who changed it, and what it costs: two prompts in, a
finding out.

Who changed a unit follows from two comparisons: of what was sent, and of what the client sent. Where only the former
differs, the gateway did it, and its notices say by which rule.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.diagnostics.prompt_cache.prompt import DIGEST_BYTES, SUMMARY, Prompt, Units
from gateway.providers.prefix_rules import PARTS, Part, prefix_rules

How = Literal["changed", "added", "removed", "reordered"]
# Estimates the tokens of units, by their positions.
Tokens: TypeAlias = Callable[[Collection[int]], int]

# The rules of notices that are about fields and marks, on which no unit of a prompt depends.
_OF_FIELDS: Final = ("CACHE_", "EFFORT_", "FIELD_", "FORMAT_", "LIMIT_", "MAX_TOKENS_", "PARAM_", "REQUEST_FIELD_")
# The stages that change the messages, those first that change the most.
_STAGES: Final = ("trim", "repair", "state", "guard", "profile", "flatten", "encode", "decode")
# What limits do, and the limits that may be the reason.
_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "MESSAGES_DROPPED": ("HISTORY_LIMITED", "TOOL_RESULTS_LIMITED"),
    "TOOL_RESULTS_ELIDED": ("TOOL_RESULTS_LIMITED",),
}


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where two prompts differ first: at this unit of a part. `index` is that of a message in the client's request;
    None: it is none of the client's. `how` says what became of the unit."""

    part: Part
    position: int
    index: int | None = None
    how: How = "changed"


class ClientChange(msgspec.Struct, frozen=True, gc=False, tag="client"):
    """The client sent something else."""

    place: Place


class RuleChange(msgspec.Struct, frozen=True, gc=False, tag="rule"):
    """The gateway made something else of what the client sent again. `rule` is that of its notice; empty: no notice
    says so, which is a defect of the gateway."""

    place: Place
    rule: str


class SummaryChange(msgspec.Struct, frozen=True, gc=False, tag="summary"):
    """A summary came into force, was replaced, or no longer applies."""

    place: Place


class RouteChange(msgspec.Struct, frozen=True, gc=False, tag="model"):
    """The request before went to another model or backend: `BACKEND/MODEL`."""

    before: str
    now: str


class FieldChange(msgspec.Struct, frozen=True, gc=False, tag="field"):
    """A field changed that the cache depends on from this part on. `rule` is that of the gateway's notice; None: the
    client changed it."""

    field: str
    part: Part
    rule: str | None = None


class ProviderMiss(msgspec.Struct, frozen=True, gc=False, tag="provider"):
    """The provider read nothing from its cache, although the prompt begins as the one before, which was answered so
    many seconds ago (None: it is not known)."""

    idle_s: float | None


class Unmarked(msgspec.Struct, frozen=True, gc=False, tag="unmarked"):
    """The provider read nothing from its cache, and the request marks nothing to be cached."""


Cause: TypeAlias = ClientChange | RuleChange | SummaryChange | RouteChange | FieldChange | ProviderMiss | Unmarked


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What a cache cannot serve of a request. `held` are the tokens of the prompt before the first difference, `lost`
    those behind it that the request before had too, and that are read anew. `cached` are those that the provider read
    from its cache; None: it did not say, and `lost` is estimated, in the measure of its count of the prompt."""

    cause: Cause
    held: int
    lost: int
    cached: int | None = None


class CacheCounts(msgspec.Struct, frozen=True):
    """What the backend reports of a prompt: its tokens, and those that it read from its cache; None: it does not."""

    prompt: int | None = None
    cached: int | None = None


UNCOUNTED: Final = CacheCounts()


def compare(
    old: Prompt, new: Prompt, tokens: Tokens, counts: CacheCounts = UNCOUNTED, idle_s: float | None = None
) -> Finding | None:
    """Returns where the new prompt differs from the old one, and what a cache cannot serve of it therefore; None: it
    begins as the old one, and the provider is not known to have missed. Where nothing behind the difference was in the
    old prompt, as in a branch of a conversation, nothing is `lost`.

    `tokens` estimates units of the new prompt (`tokens_of`), and is called only where there is something to say.
    `idle_s`: so many seconds ago the old one was answered.
    """
    cut, cause = _first_change(old, new)
    if cause is not None:
        again = _sent_again(old.sent.all[cut:], new.sent.all[cut:])
        held, lost = tokens(range(cut)), tokens([cut + at for at in again]) if again else 0
        return _counted(Finding(cause, held, lost), new, tokens, counts)
    if counts.cached != 0:
        return None
    held = tokens(range(min(len(old.sent.all), len(new.sent.all))))
    missed = ProviderMiss(None if idle_s is None else round(idle_s, 1)) if new.marked else Unmarked()
    found = _counted(Finding(missed, held, 0), new, tokens, counts)
    return found if found.lost >= prefix_rules(new.api).least else None


def is_comparable(old: Prompt, new: Prompt) -> bool:
    """Returns whether a request may go on from an earlier one of the same first message: it has at least half of the
    messages again and more than these; or it differs in its messages alone, because the client edited or repeats them.
    Else it is a branch, such as what an agent asks beside its work."""
    had, has = len(old.client.messages), len(new.client.messages)
    if has > had and 2 * DIGEST_BYTES * shared_messages(old, new) >= had:
        return True
    same_head = (old.sent.tools, old.sent.system, old.fields) == (new.sent.tools, new.sent.system, new.fields)
    return same_head and (old.backend, old.model) == (new.backend, new.model)


def shared_messages(old: Prompt, new: Prompt) -> int:
    """Returns how many of the messages of the old request the client sent again, wherever they stand."""
    return sum((Counter(old.client.of("messages")) & Counter(new.client.of("messages"))).values())


def common_units(old: Prompt, new: Prompt) -> int:
    """Returns how many units two prompts have in common from the start."""
    return _common(b"".join(old.sent.all), b"".join(new.sent.all))


def _sent_again(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """Returns the positions of the units that were sent before."""
    had = Counter(old)
    found: list[int] = []
    for at, digest in enumerate(new):
        if had[digest]:
            had[digest] -= 1
            found.append(at)
    return found


def _counted(finding: Finding, new: Prompt, tokens: Tokens, counts: CacheCounts) -> Finding:
    """Returns the finding by what the backend reports: the estimates in its measure, and what it did not read from its
    cache."""
    if not finding.held + finding.lost:
        return finding
    ratio = counts.prompt / tokens(range(len(new.sent.all))) if counts.prompt else 1.0
    held, lost = round(finding.held * ratio), round(finding.lost * ratio)
    if counts.cached is not None:
        lost = max(held + lost - counts.cached, 0)
    return Finding(finding.cause, held, lost, counts.cached)


def _first_change(old: Prompt, new: Prompt) -> tuple[int, Cause | None]:
    """Returns the position of the first unit that no cache has, and who changed it; None: nothing changed."""
    if (old.backend, old.model) != (new.backend, new.model):
        return 0, RouteChange(f"{old.backend}/{old.model}", f"{new.backend}/{new.model}")
    part = next((one for one in PARTS if _differs(old.sent, new.sent, one)), None)
    fields = prefix_rules(new.api).fields
    changed = [name for name in fields if old.fields.get(name) != new.fields.get(name)]
    field = min(changed, key=lambda name: PARTS.index(fields[name]), default=None)
    if field is not None and (part is None or PARTS.index(fields[field]) < PARTS.index(part)):
        return new.sent.start(fields[field]), FieldChange(field, fields[field], _field_rule(old, new))
    if part is None:
        return 0, None
    return new.sent.start(part) + _common_in(old.sent, new.sent, part), _who(old, new, part)


def _differs(old: Units, new: Units, part: Part) -> bool:
    """Returns whether a part differs; of the messages, more may follow."""
    before: bytes = getattr(old, part)
    after: bytes = getattr(new, part)
    if part == "messages":
        return not (after.startswith(before) or before.startswith(after))
    return before != after


def _who(old: Prompt, new: Prompt, part: Part) -> Cause:
    """Returns who changed a part of what was sent."""
    place = _place(old.sent, new.sent, part)
    if part != "messages":
        if _differs(old.client, new.client, part):
            return ClientChange(_place(old.client, new.client, part))
        return RuleChange(place, _unit_rule(old, new, None) or "")
    at = place.position
    if SUMMARY in (old.sent.index_at(at), new.sent.index_at(at)):
        return SummaryChange(place)
    if _differs(old.client, new.client, part):
        theirs = _place(old.client, new.client, part)
        # The first message of the client's at or behind the difference.
        index = next((one for one in new.sent.indexes[at:] if one > SUMMARY), None)
        if index is None or theirs.index is None or theirs.index <= index:
            return ClientChange(theirs)
    return RuleChange(place, _unit_rule(old, new, place.index) or "")


def _place(old: Units, new: Units, part: Part) -> Place:
    at = _common_in(old, new, part)
    how = _how(old.of(part), new.of(part), at)
    if part != "messages":
        return Place(part, at, None, how)
    index = (old if how == "removed" else new).index_at(at)
    return Place(part, at, index if index > SUMMARY else None, how)


def _how(before: Sequence[bytes], after: Sequence[bytes], at: int) -> How:
    """Returns what became of the first unit that differs."""
    if len(before) == len(after) and Counter(before) == Counter(after):
        return "reordered"
    if at >= len(before) or (at < len(after) and before[at] in after[at:] and after[at] not in before):
        return "added"
    if at >= len(after) or (after[at] in before[at:] and before[at] not in after):
        return "removed"
    return "changed"


def _unit_rule(old: Prompt, new: Prompt, index: int | None) -> str | None:
    """Returns the rule that changed a unit: rather one that did otherwise than in the request before, one that names
    the message, and one of an earlier stage."""
    found: list[tuple[bool, bool, int, str]] = []
    for rule in {*old.rules, *new.rules}:
        traces = [one for one in (new.rules.get(rule), old.rules.get(rule)) if one is not None]
        same = len(traces) == 2 and traces[0] == traces[1]
        names = index is not None and any(index in one.indexes for one in traces)
        if not rule.startswith(_OF_FIELDS) and (names or not same):
            stage = traces[0].stage
            found.append((same, not names, _STAGES.index(stage) if stage in _STAGES else len(_STAGES), rule))
    if not found:
        return None
    rule = min(found)[3]
    return next((limit for limit in _LIMITS.get(rule, ()) if limit in new.rules), rule)


def _field_rule(old: Prompt, new: Prompt) -> str | None:
    """Returns the rule that changed a field; None: the client did."""
    if old.asked != new.asked:
        return None
    differ = sorted(rule for rule in {*old.rules, *new.rules} if old.rules.get(rule) != new.rules.get(rule))
    return next((rule for rule in differ if rule.startswith(_OF_FIELDS)), differ[0] if differ else "")


def _common_in(old: Units, new: Units, part: Part) -> int:
    return _common(getattr(old, part), getattr(new, part))


def _common(one: bytes, other: bytes) -> int:
    """Returns the number of equal digests at the start."""
    low, high = 0, min(len(one), len(other)) // DIGEST_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * DIGEST_BYTES] == other[: middle * DIGEST_BYTES]:
            low = middle
        else:
            high = middle - 1
    return low
