"""Computes the response to a decoded request before it is encoded: text within its limits, calls, usage."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.gemini.demo.request import GeminiRequest
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.limits import End, limit_reply
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count
from gateway.demo.strict_models import is_strict

_FINISH: Final[Mapping[End, str]] = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS"}


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


def answer_gemini(request: GeminiRequest, name: str, number: int, model: Model = reply) -> Answer:
    """Computes the model's reply, cut by the stop sequences and the limit, and shaped by the schema."""
    planned = model(request.dialogue)
    text = planned.text if planned.calls else _shaped(request, planned.text)
    found = limit_reply(planned, text, request.stop, request.max_tokens)
    return Answer(
        number=number,
        model=name,
        text=found.text,
        reasoning=found.reasoning,
        calls=found.calls,
        finish=_FINISH[found.end],
        prompt_tokens=count(request.prompt),
        strict=is_strict(name),
    )


def _shaped(request: GeminiRequest, text: str) -> str:
    if not request.json_type:
        return text
    shape = request.schema
    value = {"answer": text} if shape is None else build_value(shape, request.dialogue.question)
    return msgspec.json.encode(value).decode()
