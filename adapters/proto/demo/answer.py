"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.proto.demo.request import GrpcRequest
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.limits import End, limit_reply
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count

_FINISH: Final[Mapping[End, str]] = {
    "stop": "FINISH_STOP",
    "calls": "FINISH_TOOL_CALLS",
    "length": "FINISH_LENGTH",
}


class Answer(msgspec.Struct, frozen=True):
    """One answer and its token counts, before it becomes messages. `finish` is the name of a value of `Finish`."""

    id: str
    model: str
    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    finish: str
    prompt_tokens: int

    @property
    def completion_tokens(self) -> int:
        """The tokens of reasoning, text and calls."""
        arguments = sum(count(msgspec.json.encode(call.arguments).decode()) for call in self.calls)
        return len(self.text) + len(self.reasoning) + arguments


def answer_grpc(request: GrpcRequest, number: int, model: Model = reply) -> Answer:
    """Computes the model's reply, cut by the stop sequences and the limit."""
    planned = model(request.dialogue)
    found = limit_reply(planned, planned.text, request.stop, request.max_tokens)
    return Answer(
        id=f"demo-{number}",
        model=request.model,
        text=found.text,
        reasoning=found.reasoning,
        calls=found.calls,
        finish=_FINISH[found.end],
        prompt_tokens=count(request.prompt),
    )
