"""Reads from the events of an answer what its client will send back of it, and the state that must come with it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.core.call_arguments import custom_arguments
from gateway.core.conversation import Json, JsonObject, Text, ToolCall, Turn
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought
from gateway.memory.provider_state.cached_state import TurnState, only_state

# A part of such a list arrives in pieces: these texts grow, any other field is whole.
_GROWING: Final = ("text", "summary")


class _OpenCall(msgspec.Struct):
    start: ToolCallStart
    pieces: list[str] = []
    extra: JsonObject = {}

    def whole(self) -> ToolCall:
        written = "".join(self.pieces)
        # As the client's dialect reads the call of a custom tool.
        arguments = custom_arguments(written) if self.start.extra.get("type") == "custom" else written
        return ToolCall(self.start.id, self.start.name, arguments)


class AnswerReader:
    """Reads one answer. `complete` is set by a finish that no limit and no filter has forced."""

    def __init__(self, rule: StateRule) -> None:
        self.complete = False
        self._rule = rule
        self._text: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._thoughts: list[Thought] = []
        self._open: list[str] = []
        self._fields: dict[str, Any] = {}

    def feed(self, events: Sequence[Event]) -> None:
        """Takes the next events, as the client gets them or with more of the provider's state."""
        for event in events:
            match event:
                case TextDelta():
                    self._end_thought({})
                    self._text.append(event.text)
                case ReasoningDelta():
                    self._open.append(event.text)
                case ReasoningEnd():
                    self._end_thought(event.extra, ended=True)
                case ToolCallStart():
                    self._end_thought({})
                    self._calls[event.index] = _OpenCall(event, extra=event.extra)
                case ToolCallDelta():
                    self._calls[event.index].pieces.append(event.arguments)
                case ToolCallEnd():
                    call = self._calls[event.index]
                    call.extra = {**call.extra, **event.extra}
                case PassthroughFields():
                    self._add_fields(event.fields)
                case Finish():
                    self._end_thought({})
                    self.complete = event.reason in ("stop", "tool_calls")
                case _:
                    pass

    @property
    def turn(self) -> Turn:
        """The answer as its client will send it back, without any state."""
        text = "".join(self._text)
        calls = [call.whole() for call in self._calls.values()]
        return Turn("assistant", (*([Text(text)] if text else []), *calls))

    @property
    def state(self) -> TurnState:
        """The state of a complete answer; empty where the rule asks for none of this answer."""
        if self._rule.turns != "all" and not self._calls:
            return TurnState()
        thoughts = self._thoughts
        if self._rule.reasoning == "plain" and self._rule.required == "always" and not thoughts:
            # A provider that requires the reasoning requires an empty one as well.
            thoughts = [Thought("")]
        provider = self._rule.provider if self._rule.calls else None
        calls = [only_state(call.extra, provider) for call in self._calls.values()]
        return TurnState(tuple(thoughts), tuple(calls) if any(calls) else (), self._fields)

    def _end_thought(self, extra: JsonObject, *, ended: bool = False) -> None:
        if not (self._open or ended):
            return
        text, self._open = "".join(self._open), []
        state = only_state(extra, self._rule.provider)
        if (self._rule.reasoning == "plain" and text) or (self._rule.reasoning == "signed" and state):
            self._thoughts.append(Thought(text, state, len(self._calls), bool(self._text)))

    def _add_fields(self, fields: JsonObject) -> None:
        """Adds the message's own fields: beside the other ones of a piece, or in the item of a whole event."""
        item = fields.get("item")
        for name in self._rule.fields:
            for found in (fields, item if isinstance(item, Mapping) else {}):
                if (value := found.get(name)) is not None:
                    self._fields[name] = _joined(self._fields.get(name), value)


def has_state(rule: StateRule, event: Event) -> bool:
    """Returns whether the state of an answer has that of this event, if the rule asks for any state of the answer."""
    match event:
        case ReasoningEnd():
            return rule.reasoning == "signed" and bool(only_state(event.extra, rule.provider))
        case ToolCallStart() | ToolCallEnd():
            return rule.calls and bool(only_state(event.extra, rule.provider))
        case _:
            return False


def _joined(before: Json, value: Json) -> Json:
    """Returns a field from its pieces: the parts of a list grow, of any other value the last one counts."""
    if not (isinstance(before, list) and isinstance(value, list)):
        return value
    parts = list(before)
    for part in value:
        last = parts[-1] if parts else None
        if isinstance(part, dict) and isinstance(last, dict) and _continues(last, part):
            parts[-1] = _grown(last, part)
        else:
            parts.append(part)
    return parts


def _continues(last: Mapping[str, Json], part: Mapping[str, Json]) -> bool:
    return "index" in part and all(last.get(name) == part.get(name) for name in ("index", "type"))


def _grown(last: Mapping[str, Json], piece: Mapping[str, Json]) -> dict[str, Json]:
    grown = {**last, **{name: value for name, value in piece.items() if value is not None}}
    for name in _GROWING:
        begun, more = last.get(name), piece.get(name)
        if isinstance(begun, str) and isinstance(more, str):
            # Some providers repeat the whole text so far.
            grown[name] = more if begun and more.startswith(begun) else begun + more
    return grown
