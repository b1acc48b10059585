"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

import msgspec

from adapters.openai_responses.demo.request import ResponsesRequest
from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces


class Answer(msgspec.Struct, frozen=True):
    """One response, before it becomes events or one object. `summarises`: the reasoning is shown as a summary, not as
    it is. `encrypts`: its item has encrypted content. `custom` are the names of tools that take text."""

    number: int
    model: str
    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    incomplete: str | None
    prompt_tokens: int
    summarises: bool = False
    encrypts: bool = False
    custom: frozenset[str] = frozenset()

    @property
    def usage(self) -> dict[str, Json]:
        """The counts of the wire."""
        written = sum(count(self.input_of(call)) for call in self.calls)
        output = len(self.text) + len(self.reasoning) + written
        return {
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": len(self.reasoning)},
            "total_tokens": self.prompt_tokens + output,
        }

    def input_of(self, call: PlannedCall) -> str:
        """Returns the arguments of a call as JSON, or the text for a custom tool."""
        if call.name in self.custom:
            return str(call.arguments.get("input", ""))
        return msgspec.json.encode(call.arguments).decode()


def answer_request(request: ResponsesRequest, number: int, model: Model = reply) -> Answer:
    """Computes the model's reply, cut by `max_output_tokens`, and shaped by `text.format`."""
    replied = model(request.dialogue)
    words = pieces(replied.text if replied.calls else _shaped(request, replied.text))
    calls, incomplete = replied.calls, None
    if request.max_tokens is not None and len(words) > request.max_tokens:
        words, calls, incomplete = words[: request.max_tokens], (), "max_output_tokens"
    return Answer(
        number=number,
        model=request.model,
        text=tuple(words),
        reasoning=tuple(pieces(replied.reasoning)),
        calls=calls,
        incomplete=incomplete,
        prompt_tokens=count(request.prompt),
        summarises=request.summarises,
        encrypts=request.encrypts,
        custom=request.custom,
    )


def _shaped(request: ResponsesRequest, text: str) -> str:
    match request.text_format:
        case {"type": "json_schema", "schema": dict(schema)}:
            return msgspec.json.encode(build_value(schema, request.dialogue.question)).decode()
        case {"type": "json_object"}:
            return msgspec.json.encode({"answer": text}).decode()
        case _:
            return text
