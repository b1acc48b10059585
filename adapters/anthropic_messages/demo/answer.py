"""Computes the response to a decoded request before it is encoded: blocks within the limits, stop reason, usage."""

import msgspec

from adapters.anthropic_messages.demo.request import MessagesRequest
from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces


class Answer(msgspec.Struct, frozen=True):
    """One message, before it becomes events or one object. `thinking` and `text` are in pieces."""

    id: str
    model: str
    thinking: tuple[str, ...]
    text: tuple[str, ...]
    calls: tuple[PlannedCall, ...]
    stop_reason: str
    stop_sequence: str | None
    input_tokens: int

    @property
    def output_tokens(self) -> int:
        return len(self.thinking) + len(self.text) + sum(count(arguments_of(call)) for call in self.calls)


def answer_request(request: MessagesRequest, number: int, model: Model = reply) -> Answer:
    """Computes the model's reply, cut by `stop_sequences` and `max_tokens`, and shaped by `output_config.format`."""
    planned = model(request.dialogue)
    calls = tuple(msgspec.structs.replace(call, id=call.id.replace("call_", "toolu_")) for call in planned.calls)
    text, stop = _stopped(planned.text if calls else _shaped(request, planned.text), request.stop)
    words, reason = pieces(text), "tool_use" if calls else "end_turn"
    if stop is not None:
        calls, reason = (), "stop_sequence"
    if len(words) > request.max_tokens:
        words, calls, reason, stop = words[: request.max_tokens], (), "max_tokens", None
    return Answer(
        id=f"msg_demo_{number}",
        model=request.model,
        thinking=tuple(pieces(planned.reasoning)) if request.thinks else (),
        text=tuple(words),
        calls=calls,
        stop_reason=reason,
        stop_sequence=stop,
        input_tokens=count(request.prompt),
    )


def arguments_of(call: PlannedCall) -> str:
    return msgspec.json.encode(call.arguments).decode()


def _stopped(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """Returns the text before the first stop sequence in it, and that sequence."""
    found = min((stop for stop in stops if stop in text), key=text.index, default=None)
    return (text, None) if found is None else (text.partition(found)[0], found)


def _shaped(request: MessagesRequest, text: str) -> str:
    if request.schema is None:
        return text
    value: Json = build_value(request.schema, request.dialogue.question)
    return msgspec.json.encode(value).decode()
