"""The Magpie's wire: a history with roles and calls goes out, JSON lines with thoughts, words and calls come back."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from gateway.adapter import BackendRequest, Capabilities, Decoder
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Json, Reasoning, ToolCall, ToolSpec, Turn
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated, InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import provider_state, with_provider_state
from gateway.core.state_rule import StateRule
from gateway.framing.json_text import decode_json
from gateway.framing.ndjson import NDJSONDecoder

REASONS: Mapping[str, Reason] = {"said": "stop", "called": "tool_calls", "full": "length"}


class MagpieOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Magpie has no keys of its own in settings.json."""


class Line(msgspec.Struct):
    """One line of an answer. A call begins with its `call` and `id`; `input` is a piece of its arguments. `seal` ends
    thoughts: only the Magpie can read it, and it wants it back with them."""

    think: str = ""
    seal: str = ""
    say: str = ""
    call: str | None = None
    id: str = ""
    input: str = ""
    end: str | None = None
    tokens: int | None = None
    error: str | None = None


class MagpieDecoder:
    """Bytes of one answer in, events out. One call is open at a time."""

    def __init__(self, max_event: int) -> None:
        self.done = False
        self._lines = NDJSONDecoder(max_event)
        self._started = False
        self._open = False
        self._calls = 0

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            for payload in self._lines.feed(data):
                if not self.done:
                    events += self._line(payload)
            # Whole lines come before an error in the same bytes.
            if self._lines.fault is not None and not self.done:
                raise self._lines.fault
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        if not self.done:
            raise BackendTruncated("The magpie flew away in the middle of its answer.")
        return []

    def _line(self, payload: bytes) -> list[Event]:
        try:
            line = msgspec.json.decode(payload.decode("utf-8", "replace"), type=Line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BackendProtocolError("The magpie sent a line that is not its JSON.") from error
        if line.error is not None:
            rejected = BackendRejected("The magpie reported an error in its answer.")
            rejected.words = line.error
            raise rejected
        events: list[Event] = [] if self._started else [ResponseStart()]
        self._started = True
        if line.call is not None or line.end is not None:
            events += self._end_call()
        if line.think:
            events.append(ReasoningDelta(line.think))
        if line.seal:
            events.append(ReasoningEnd(with_provider_state("magpie", {"opaque": line.seal})))
        if line.say:
            events.append(TextDelta(line.say))
        if line.call is not None:
            events.append(ToolCallStart(self._calls, line.id or f"magpie_{self._calls}", line.call))
            self._open = True
        if line.input:
            if not self._open:
                raise BackendProtocolError("The magpie sent arguments of no call.")
            events.append(ToolCallDelta(self._calls, line.input))
        if line.end is not None:
            events += self._finish(line.end, line.tokens)
        return events

    def _end_call(self) -> list[Event]:
        if not self._open:
            return []
        self._open = False
        self._calls += 1
        return [ToolCallEnd(self._calls - 1)]

    def _finish(self, said: str, tokens: int | None) -> list[Event]:
        if said not in REASONS:
            raise BackendProtocolError("The magpie ended for a reason that it has never had.")
        self.done = True
        usage: list[Event] = [] if tokens is None else [UsageReport(completion_tokens=tokens)]
        return [*usage, Finish(REASONS[said], said)]


class MagpieAdapter:
    """Roles, calls and results as they are; images and files are not declared, so that no code here sees one."""

    Options: ClassVar[type[msgspec.Struct]] = MagpieOptions
    capabilities = Capabilities(
        tools=True,
        supported_params=frozenset({"temperature"}),
        carries=frozenset({"extra_content.magpie"}),
        state=StateRule(provider="magpie", reasoning="signed", turns="loop"),
    )

    def __init__(self, options: MagpieOptions, max_event: int) -> None:
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        notices: list[Notice] = []
        history = [entry for turn in conversation.turns for entry in _entries(turn, notices)]
        body = {
            "model": conversation.model,
            "temperature": conversation.sampling.temperature,
            # What may be called is what is offered: the Magpie knows no choice.
            "tools": [] if conversation.tool_choice == "none" else [_tool(tool) for tool in conversation.tools],
            "history": history,
        }
        try:
            encoded = msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise InvalidRequest("The request holds half of a character.") from error
        return BackendRequest(
            path="/chatter",
            headers={"content-type": "application/json", "accept": "application/x-ndjson"},
            body=encoded,
            accepts=("application/x-ndjson",),
            notices=tuple(notices),
        )

    def decoder(self, conversation: Conversation) -> Decoder:
        return MagpieDecoder(self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return status_error(status, headers)

    def describe(self, body: bytes) -> Json:
        return decode_json(body)


def _entries(turn: Turn, notices: list[Notice]) -> list[dict[str, Json]]:
    """One entry for each result, and one for what else the turn says."""
    entries: list[dict[str, Json]] = [{"who": "tool", "of": one.call_id, "says": one.text} for one in turn.results]
    if turn.role == "tool":
        return entries
    entry: dict[str, Json] = {"who": "system" if turn.role == "developer" else turn.role, "says": turn.text}
    if turn.name is not None:
        entry["name"] = turn.name
    thoughts = [block for block in turn.blocks if isinstance(block, Reasoning)]
    if thoughts:
        entry["thinks"] = "\n".join(block.text for block in thoughts)
    # A message of chat completions has one state, beside its reasoning.
    extras = [*(block.extra for block in thoughts), turn.extra]
    seals = [provider_state(extra, "magpie").get("opaque") for extra in extras]
    if any(seals):
        entry["seals"] = [seal for seal in seals if seal]
    if turn.calls:
        entry["calls"] = [_call(call, turn, notices) for call in turn.calls]
    return [entry, *entries]


def _call(call: ToolCall, turn: Turn, notices: list[Notice]) -> Json:
    """The Magpie wants arguments as an object. What a model wrote may be anything, and must not be made up."""
    try:
        arguments: Json = decode_json(call.arguments.encode("utf-8", "replace"))
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        detail = f"the arguments of {call.name} are no JSON object and are sent as text"
        notices.append(Notice("encode", "changed", "ARGUMENTS_AS_TEXT", detail, turn.index, call.id, "warning"))
        arguments = {"text": call.arguments}
    return {"id": call.id, "tool": call.name, "input": arguments}


def _tool(tool: ToolSpec) -> Json:
    return {"name": tool.name, "about": tool.description, "input": dict(tool.parameters)}
