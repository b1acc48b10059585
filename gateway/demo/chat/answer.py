"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

import msgspec

from gateway.core.conversation import Json
from gateway.demo.chat.request import ChatRequest
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces


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


def answer_chat(request: ChatRequest, number: int) -> Answer:
    """Compute the scripted reply, cut by `stop` and `max_tokens`, and shaped by `response_format`."""
    planned = reply(request.dialogue)
    text = planned.text if planned.calls else _shaped(request, planned.text)
    finish = "tool_calls" if planned.calls else "stop"
    calls = planned.calls
    for stop in request.stop:
        text = text.partition(stop)[0]
    words = pieces(text)
    if request.max_tokens is not None and len(words) > request.max_tokens:
        words, finish, calls = words[: request.max_tokens], "length", ()
    return Answer(
        id=f"chatcmpl-demo-{number}",
        model=request.model,
        text=tuple(words),
        reasoning=tuple(pieces(planned.reasoning)),
        calls=calls,
        finish=finish,
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
