"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

import msgspec

from gateway.demo.grpc.request import GrpcRequest
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces


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


def answer_grpc(request: GrpcRequest, number: int) -> Answer:
    """Compute the scripted reply, cut by the stop sequences and the limit."""
    planned = reply(request.dialogue)
    text = planned.text
    for stop in request.stop:
        text = text.partition(stop)[0]
    words, calls = pieces(text), planned.calls
    finish = "FINISH_TOOL_CALLS" if calls else "FINISH_STOP"
    if request.max_tokens is not None and len(words) > request.max_tokens:
        words, finish, calls = words[: request.max_tokens], "FINISH_LENGTH", ()
    return Answer(
        id=f"demo-{number}",
        model=request.model,
        text=tuple(words),
        reasoning=tuple(pieces(planned.reasoning)),
        calls=calls,
        finish=finish,
        prompt_tokens=count(request.prompt),
    )
