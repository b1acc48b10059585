"""Reads from the events of an answer what its client will send back of it, and the state that must come with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.core.answer import AnswerCall, AnswerPart, AnswerReader, AnswerReasoning, AnswerText
from gateway.core.call_arguments import custom_arguments
from gateway.core.conversation import EMPTY, Json, JsonObject, Text, ToolCall, Turn
from gateway.core.events import Event, PassthroughFields, ReasoningEnd, ToolCallEnd, ToolCallStart
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought
from gateway.memory.provider_state.cached_state import TurnState, only_state

# A part of such a list arrives in pieces: these texts grow, any other field is whole.
_GROWING: Final = ("text", "summary")


class StateReader:
    """Reads one answer. `complete` is set by a finish that no limit and no filter has forced."""

    def __init__(self, rule: StateRule) -> None:
        self._rule = rule
        self._reader = AnswerReader()
        self._fields: dict[str, Any] = {}

    def feed(self, events: Sequence[Event]) -> None:
        """Takes the next events, as the client gets them or with more of the provider's state."""
        content: list[Event] = []
        for event in events:
            if type(event) is PassthroughFields:
                self._add_fields(event.fields)
            else:
                content.append(event)
        self._reader.feed(content)

    @property
    def complete(self) -> bool:
        finish = self._reader.finish
        return finish is not None and finish.reason in ("stop", "tool_calls")

    @property
    def turn(self) -> Turn:
        """The answer as its client will send it back, without any state."""
        answer = self._reader.answer
        text = answer.text
        return Turn("assistant", (*([Text(text)] if text else []), *map(_sent_back, answer.calls)))

    @property
    def state(self) -> TurnState:
        """The state of a complete answer; empty where the rule asks for none of this answer."""
        answer = self._reader.answer
        if self._rule.turns != "all" and not answer.calls:
            return TurnState()
        thoughts = [*self._thoughts(answer.parts)]
        if self._rule.reasoning == "plain" and self._rule.required == "always" and not thoughts:
            # A provider that requires the reasoning requires an empty one as well.
            thoughts = [Thought("")]
        provider = self._rule.provider if self._rule.calls else None
        calls = [only_state({**call.start.extra, **call.end}, provider) for call in answer.calls]
        return TurnState(tuple(thoughts), tuple(calls) if any(calls) else (), self._fields)

    def _thoughts(self, parts: Sequence[AnswerPart]) -> Iterator[Thought]:
        """Yields the pieces of reasoning that the rule asks for, each with its place among the calls and the text."""
        open_pieces: list[str] = []
        calls, spoke = 0, False
        # The end of the answer ends the last piece.
        for part in (*parts, ReasoningEnd(EMPTY)):
            if type(part) is AnswerReasoning:
                open_pieces += part.pieces
                continue
            text = "".join(open_pieces)
            state = only_state(part.extra, self._rule.provider) if type(part) is ReasoningEnd else {}
            if (self._rule.reasoning == "plain" and text) or (self._rule.reasoning == "signed" and state):
                yield Thought(text, state, calls, spoke)
            open_pieces = []
            calls += type(part) is AnswerCall
            spoke = spoke or type(part) is AnswerText

    def _add_fields(self, fields: JsonObject) -> None:
        """Adds the message's own fields: beside the other ones of a piece, or in the item of a whole event."""
        item = fields.get("item")
        for name in self._rule.fields:
            for found in (fields, item if isinstance(item, Mapping) else {}):
                if (value := found.get(name)) is not None:
                    self._fields[name] = _joined(self._fields.get(name), value)


def _sent_back(call: AnswerCall) -> ToolCall:
    # As the client's dialect reads the call of a custom tool.
    is_custom = call.start.extra.get("type") == "custom"
    return ToolCall(call.start.id, call.start.name, custom_arguments(call.arguments) if is_custom else call.arguments)


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
