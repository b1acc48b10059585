"""Folds all events of a response into one `chat.completion` object with the content of the equivalent stream."""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from adapters.openai.usage import usage_object
from adapters.openai_chat.unknown_fields import as_custom, call_object, merged
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningField,
    ResponseStart,
    Scope,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.provider_state import several_states
from gateway.dialects.custom_input import custom_input
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.usage import merge_usage

_encode: Final = msgspec.json.Encoder().encode


def encode_completion(
    events: Iterable[Event],
    id: str,
    created: int,
    model: str,
    diagnostics: bool = False,
    custom: frozenset[str] = frozenset(),
) -> bytes:
    """Returns one JSON response from the events of a complete response. `diagnostics` adds the notices among them;
    `custom` are the names of the client's custom tools."""
    fold = _Fold(custom)
    fold.sort(events)
    answer: dict[str, Json] = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [fold.choice()],
    }
    if "response" in fold.unknown:
        answer.update(merged(fold.unknown["response"], "response"))
    if fold.usage is not None:
        answer["usage"] = usage_object(fold.usage)
    if said := dragoman_field(fold.usage, fold.notices if diagnostics else None):
        answer["dragoman"] = said
    return _encode(answer)


class _Fold(msgspec.Struct):
    """The response, its pieces sorted by kind."""

    custom: frozenset[str]
    text: list[str] = []
    reasoning: dict[ReasoningField, list[str]] = {}
    starts: dict[int, ToolCallStart] = {}
    arguments: dict[int, list[str]] = {}
    reason: Reason = "stop"
    usage: UsageReport | None = None
    notices: list[Notice] = []
    unknown: dict[Scope, list[JsonObject]] = {}
    states: list[JsonObject] = []

    def sort(self, events: Iterable[Event]) -> None:
        # Compares classes: a match statement on an event of another class takes several times as long.
        for event in events:
            if type(event) is TextDelta:
                self.text.append(event.text)
            elif type(event) is ToolCallDelta:
                self.arguments[event.index].append(event.arguments)
            elif type(event) is ReasoningDelta:
                self.reasoning.setdefault(event.field, []).append(event.text)
            elif type(event) is PassthroughFields:
                self.unknown.setdefault(event.scope, []).append(event.fields)
            elif type(event) is ReasoningEnd:
                self.states += [event.extra] if event.extra else ()
            elif type(event) is Finish:
                self.reason = event.reason
            elif type(event) is UsageReport:
                self.usage = merge_usage(self.usage, event)
            elif type(event) is ToolCallStart:
                self.starts[event.index] = event
                self.arguments[event.index] = []
            elif type(event) is Notice:
                self.notices.append(event)
            elif type(event) is not ResponseStart and type(event) is not ToolCallEnd:
                assert_never(event)

    def choice(self) -> dict[str, Json]:
        """Returns the one choice, with the backend's unknown fields."""
        unknown = self.unknown
        if self.states:
            unknown.setdefault("delta", []).append(several_states(self.states))
        fields = merged(unknown["delta"], "delta") if "delta" in unknown else EMPTY
        silent = not self.text and (self.starts or self.reasoning or fields)
        content = None if silent else "".join(self.text)
        message: dict[str, Json] = {"role": "assistant", "content": content, "refusal": None}
        if self.reasoning:
            message |= {name: "".join(pieces) for name, pieces in self.reasoning.items()}
        if self.starts:
            message["tool_calls"] = [self._call(start) for start in self.starts.values()]
        message.update(fields)
        choice: dict[str, Json] = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reason}
        if "choice" in unknown:
            choice.update(merged(unknown["choice"], "choice"))
        return choice

    def _call(self, start: ToolCallStart) -> dict[str, Json]:
        arguments = "".join(self.arguments[start.index])
        if start.extra.get("type") != "custom":
            if start.name in self.custom:
                return call_object(start.id, start.name, custom_input(arguments), as_custom(start.extra))
            arguments = arguments or "{}"
        return call_object(start.id, start.name, arguments, start.extra)
