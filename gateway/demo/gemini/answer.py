"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

import msgspec

from gateway.demo.gemini.request import GeminiRequest
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces
from gateway.demo.strict_models import is_strict


class Answer(msgspec.Struct, frozen=True):
    """One candidate and its token counts, before they become chunks or one object. `strict`: the signature of a call
    belongs to it alone."""

    number: int
    model: str
    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    finish: str
    prompt_tokens: int
    strict: bool = False

    @property
    def id(self) -> str:
        return f"demo-{self.number}"

    @property
    def answer_tokens(self) -> int:
        """The tokens of text and calls, without those of the thoughts."""
        return len(self.text) + sum(count(msgspec.json.encode(call.arguments).decode()) for call in self.calls)


def answer_gemini(request: GeminiRequest, model: str, number: int) -> Answer:
    """Compute the scripted reply, cut by the stop sequences and the limit, and shaped by the schema."""
    planned = reply(request.dialogue)
    text = planned.text if planned.calls else _shaped(request, planned.text)
    for stop in filter(None, request.stop):
        text = text.partition(stop)[0]
    words, finish, calls = pieces(text), "STOP", planned.calls
    if request.max_tokens is not None and len(words) > request.max_tokens:
        words, finish, calls = words[: request.max_tokens], "MAX_TOKENS", ()
    return Answer(
        number=number,
        model=model,
        text=tuple(words),
        reasoning=tuple(pieces(planned.reasoning)),
        calls=calls,
        finish=finish,
        prompt_tokens=count(request.prompt),
        strict=is_strict(model),
    )


def _shaped(request: GeminiRequest, text: str) -> str:
    if not request.json_type:
        return text
    shape = request.schema
    value = {"answer": text} if shape is None else build_value(shape, request.dialogue.question)
    return msgspec.json.encode(value).decode()
