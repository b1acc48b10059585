"""Encodes an answer as one `chat.completion` object."""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from adapters.openai.usage import usage_object
from adapters.openai_chat.unknown_fields import as_custom, call_object, merged
from gateway.core.answer import Answer, AnswerCall, AnswerPart, AnswerReasoning, AnswerText
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import PassthroughFields, Reason, ReasoningEnd, ReasoningField, Scope
from gateway.core.provider_state import several_states
from gateway.dialects.custom_input import custom_input
from gateway.dialects.dragoman_field import dragoman_field

_encode: Final = msgspec.json.Encoder().encode


def encode_completion(
    answer: Answer,
    id: str,
    created: int,
    model: str,
    diagnostics: bool = False,
    custom: frozenset[str] = frozenset(),
) -> bytes:
    """Returns one JSON response. `diagnostics` adds the notices of the answer; `custom` are the names of the client's
    custom tools."""
    content = _sorted(answer.parts)
    whole: dict[str, Json] = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [content.choice("stop" if answer.finish is None else answer.finish.reason, custom)],
    }
    if fields := content.unknown["response"]:
        whole |= merged(fields, "response")
    if answer.usage is not None:
        whole["usage"] = usage_object(answer.usage)
    if said := dragoman_field(answer.usage, answer.notices if diagnostics else None):
        whole["dragoman"] = said
    return _encode(whole)


class _Content(msgspec.Struct, frozen=True):
    """The parts of an answer by their kind: a message of this API has one place for each kind."""

    text: list[str]
    reasoning: dict[ReasoningField, list[str]]
    calls: list[AnswerCall]
    states: list[JsonObject]
    unknown: dict[Scope, list[JsonObject]]

    def choice(self, reason: Reason, custom: frozenset[str]) -> dict[str, Json]:
        """Returns the one choice, with the backend's unknown fields."""
        unknown = self.unknown
        if self.states:
            unknown["delta"].append(several_states(self.states))
        fields = merged(unknown["delta"], "delta") if unknown["delta"] else EMPTY
        silent = not self.text and (self.calls or self.reasoning or fields)
        content = None if silent else "".join(self.text)
        message: dict[str, Json] = {"role": "assistant", "content": content, "refusal": None}
        if self.reasoning:
            message |= {name: "".join(pieces) for name, pieces in self.reasoning.items()}
        if self.calls:
            message["tool_calls"] = [_call(call, custom) for call in self.calls]
        message |= fields
        choice: dict[str, Json] = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        if unknown["choice"]:
            choice |= merged(unknown["choice"], "choice")
        return choice


def _sorted(parts: Iterable[AnswerPart]) -> _Content:
    text: list[str] = []
    reasoning: dict[ReasoningField, list[str]] = {}
    calls: list[AnswerCall] = []
    states: list[JsonObject] = []
    unknown: dict[Scope, list[JsonObject]] = {"response": [], "choice": [], "delta": [], "event": []}
    for part in parts:
        if type(part) is AnswerText:
            text += part.pieces
        elif type(part) is PassthroughFields:
            unknown[part.scope].append(part.fields)
        elif type(part) is AnswerReasoning:
            reasoning.setdefault(part.field, []).extend(part.pieces)
        elif type(part) is AnswerCall:
            calls.append(part)
        elif type(part) is ReasoningEnd:
            states += [part.extra] if part.extra else ()
        else:
            assert_never(part)
    return _Content(text, reasoning, calls, states, unknown)


def _call(call: AnswerCall, custom: frozenset[str]) -> dict[str, Json]:
    start, arguments = call.start, call.arguments
    if start.extra.get("type") != "custom":
        if start.name in custom:
            return call_object(start.id, start.name, custom_input(arguments), as_custom(start.extra))
        arguments = arguments or "{}"
    return call_object(start.id, start.name, arguments, start.extra)
