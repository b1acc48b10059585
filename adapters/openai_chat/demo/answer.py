"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.openai_chat.demo.request import ChatRequest
from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.limits import End, limit_reply
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count

_FINISH: Final[Mapping[End, str]] = {"stop": "stop", "calls": "tool_calls", "length": "length"}


class Answer(msgspec.Struct, frozen=True):
    """One choice and its usage, before they become chunks or one object."""

    id: str
    model: str
    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    finish: str
    prompt_tokens: int

    @property
    def usage(self) -> dict[str, Json]:
        arguments = sum(count(arguments_of(call)) for call in self.calls)
        completion = len(self.text) + len(self.reasoning) + arguments
        usage: dict[str, Json] = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }
        return usage | {"completion_tokens_details": {"reasoning_tokens": len(self.reasoning)}}


def answer_chat(request: ChatRequest, number: int, model: Model = reply) -> Answer:
    """Computes the model's reply, cut by `stop` and `max_tokens`, and shaped by `response_format`."""
    planned = model(request.dialogue)
    text = planned.text if planned.calls else _shaped(request, planned.text)
    found = limit_reply(planned, text, request.stop, request.max_tokens)
    return Answer(
        id=f"chatcmpl-demo-{number}",
        model=request.model,
        text=found.text,
        reasoning=found.reasoning,
        calls=found.calls,
        finish=_FINISH[found.end],
        prompt_tokens=count(request.prompt),
    )


def arguments_of(call: PlannedCall) -> str:
    return msgspec.json.encode(call.arguments).decode()


def _shaped(request: ChatRequest, text: str) -> str:
    match request.response_format:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return msgspec.json.encode(build_value(schema, request.dialogue.question)).decode()
        case {"type": "json_object"}:
            return msgspec.json.encode({"answer": text}).decode()
        case _:
            return text
