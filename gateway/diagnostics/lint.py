"""Checks files of requests offline against the rules, and against the fields that the provider of a profile takes;
writes the findings as text, JSON or SARIF.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from gateway.adapter import Adapter, Capabilities
from gateway.capabilities.refused_history import refused_history
from gateway.capabilities.request_fields import refused_fields
from gateway.core.conversation import Conversation, Json, Violation
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.rules import violation
from gateway.diagnostics.explain_recorded import recorded_document
from gateway.diagnostics.saved_dialect import saved_dialect
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import Document, read_saved
from gateway.providers.profile import NEUTRAL, Profile
from gateway.providers.request_rules import RequestRules
from gateway.recording.lines import RequestLine
from gateway.recording.recording import Interaction, Recording, is_recording, read_recording
from gateway.recording.route import adapter_of, policy_of, request_head
from gateway.registry import ADAPTERS, DEFAULT_DIALECT, load_adapter, load_dialect
from gateway.settings import BackendSettings

_NO_HEAD: Final = RequestHead("")
_MAX_EVENT: Final = 1 << 20
_RENAMED: Final = "REQUEST_FIELD_RENAMED"
_ADVICE: Final = {
    "REQUEST_FIELD_CHANGED": "Send a value that the provider accepts.",
    "REQUEST_FIELD_DROPPED": "Leave it out for this provider.",
    _RENAMED: "Send it under the provider's own name.",
    "EFFORT_CHANGED": "Send an effort that the model takes.",
}

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def refused_field_violations(conversation: Conversation, profile: Profile) -> list[Violation]:
    """Returns a violation for each field beside the turns that the profile changes or that its provider refuses, in the
    order of the request. A field that has its name from another API than chat completions is no mistake."""
    rules = profile.request_rules
    if rules is None:
        return []
    # The adapter of the default dialect writes the fields that the rules are about.
    adapter = load_adapter("lint", BackendSettings(DEFAULT_DIALECT, "http://localhost"), _MAX_EVENT)
    asked = msgspec.structs.replace(conversation, turns=())
    found = [*_refused(asked, rules), *_changed(adapter, asked, profile), *_stops(asked, rules)]
    first = {violation.param: violation for violation in reversed(found)}
    places = {asked.paths.param(name): at for at, name in enumerate(asked.params)}
    return sorted(first.values(), key=lambda violation: places.get(violation.param, len(places)))


def _refused(asked: Conversation, rules: RequestRules) -> Iterator[Violation]:
    for name in refused_fields(asked, rules, asked.model):
        path = asked.paths.param(name)
        detail = f"{path}: the provider refuses it, and the answer would not be what it asks for"
        yield Violation("PARAM_REFUSED", -1, detail, path, advice="Use another model for this request.")


def _changed(adapter: Adapter, asked: Conversation, profile: Profile) -> Iterator[Violation]:
    own = asked.dialect == adapter.capabilities.passthrough
    for notice in adapter.encode(asked, Policy(profile=profile)).notices:
        if notice.rule in _ADVICE and (own or notice.rule != _RENAMED):
            yield Violation(notice.rule, -1, notice.detail, _place(notice, asked), advice=_ADVICE[notice.rule])


def _place(notice: Notice, asked: Conversation) -> str:
    """Returns the path that a notice is about: its first word, where that is a field of the request."""
    word = notice.detail.split(" ", 1)[0]
    return word if word in {asked.paths.param(name) for name in asked.params} else asked.paths.param("model")


def _stops(asked: Conversation, rules: RequestRules) -> Iterator[Violation]:
    sequences, stops = asked.sampling.stop, rules.stops_of(asked.model)
    refused = 0 if stops is None else len({*sequences}) - len(stops.accepted(sequences))
    if refused:
        path = asked.paths.param("stop")
        detail = f"{path} has {refused} sequences that the provider does not accept; the gateway applies them itself"
        yield Violation("REQUEST_FIELD_CHANGED", -1, detail, path, advice="Send fewer, shorter or no blank sequences.")


class Finding(msgspec.Struct, frozen=True):
    """One broken rule of one file. `line` counts from 1 in a file of one request a line, else it is None."""

    file: str
    violation: Violation
    line: int | None = None

    @property
    def place(self) -> str:
        """Returns the place in the notation of compilers."""
        file = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{file}: {self.violation.param or 'messages'}"


def lint(file: str, data: bytes, profile: Profile | None = None, dialect: str | None = None) -> list[Finding]:
    """Returns every broken rule of a file: one request, an array of messages, one of them a line (`.jsonl`), or a
    recording.

    `profile` adds the rules of its provider, None: those that a recorded request was sent by; `dialect` is the name of
    that of the requests, None: each is recognised by its shape. Raises InvalidRequest for a file that is none of these,
    whose dialect must be named, or that lacks the body of a request.
    """
    if is_recording(data):
        return _of_recording(file, read_recording(data), profile)
    if not file.endswith(".jsonl"):
        return _findings(file, data, None, dialect, profile or NEUTRAL)
    lines = enumerate(data.split(b"\n"), 1)
    return [
        finding
        for number, line in lines
        if line.strip()
        for finding in _findings(file, line, number, dialect, profile or NEUTRAL)
    ]


def _of_recording(file: str, recording: Recording, profile: Profile | None) -> list[Finding]:
    # The header is the first line.
    numbers = {line.x: number for number, line in enumerate(recording.lines, 2) if isinstance(line, RequestLine)}
    found: list[Finding] = []
    for interaction in recording.interactions():
        number = numbers[interaction.x]
        try:
            found += [Finding(file, one, number) for one in _of_recorded(interaction, profile)]
        except InvalidRequest as error:
            raise InvalidRequest(f"{file}:{number}: {error.message}", param=error.param) from error
    return found


def _of_recorded(interaction: Interaction, profile: Profile | None) -> Sequence[Violation]:
    route = interaction.route
    document = recorded_document(interaction)
    dialect = load_dialect(interaction.request.dialect)
    adapter = adapter_of(route) if profile is None and route is not None and route.adapter in ADAPTERS else None
    if profile is None:
        profile = NEUTRAL if route is None else policy_of(route).profile
    capabilities = None if adapter is None else adapter.capabilities
    return _violations(document, dialect, profile, request_head(interaction), capabilities)


def _findings(file: str, data: bytes, line: int | None, dialect: str | None, profile: Profile) -> list[Finding]:
    try:
        known = saved_dialect(data, dialect)
        document = read_saved(data, known.paths.param("messages"))
        return [Finding(file, found, line) for found in _violations(document, known, profile)]
    except InvalidRequest as error:
        place = file if line is None else f"{file}:{line}"
        raise InvalidRequest(f"{place}: {error.message}", param=error.param) from error


def _violations(
    document: Document,
    dialect: Dialect,
    profile: Profile,
    head: RequestHead = _NO_HEAD,
    capabilities: Capabilities | None = None,
) -> Sequence[Violation]:
    history = dialect.paths.param("messages")
    required = {
        name: value for name, value in dialect.example("any").items() if name not in (history, *document.fields)
    }
    document.fields.update(required)
    if document.fields.get(history) == []:
        return [violation("MESSAGES_EMPTY", -1, param=history, paths=dialect.paths)]
    conversation = dialect.decode(document, head).conversation
    return [*refused_history(conversation, profile, capabilities), *refused_field_violations(conversation, profile)]


def as_text(findings: Sequence[Finding]) -> str:
    """Returns one finding a line: `FILE: messages[3].role: TOOL_ORPHAN: what is wrong. How to fix it.`"""
    return "".join(
        f"{finding.place}: {finding.violation.rule}: {finding.violation.detail.rstrip('.')}. "
        f"{finding.violation.advice}\n"
        for finding in findings
    )


def as_json(findings: Sequence[Finding]) -> str:
    """Returns an array of objects with `file`, `line` and the fields of the violation."""
    listed = [
        {"file": finding.file, "line": finding.line, **msgspec.to_builtins(finding.violation)} for finding in findings
    ]
    return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"


def as_sarif(findings: Sequence[Finding]) -> str:
    """Returns SARIF 2.1.0, for code review tools."""
    advice = {finding.violation.rule: finding.violation.advice for finding in findings}
    rules: list[Json] = [{"id": rule, "help": {"text": advice[rule]}} for rule in sorted(advice)]
    driver: Json = {"name": "dragoman", "rules": rules}
    run: Json = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    document: Json = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _result(finding: Finding) -> Json:
    found = finding.violation
    physical: dict[str, Json] = {"artifactLocation": {"uri": finding.file}}
    if finding.line is not None:
        physical["region"] = {"startLine": finding.line}
    location: dict[str, Json] = {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": found.param or "messages"}],
    }
    text = f"{found.detail.rstrip('.')}. {found.advice}"
    return {"ruleId": found.rule, "level": "error", "message": {"text": text}, "locations": [location]}


FORMATS: Final[dict[str, Callable[[Sequence[Finding]], str]]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
}
