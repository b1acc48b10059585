"""Encodes the response to a decoded request as llama.cpp's completion endpoint does: as events, or as one object."""

import msgspec

from adapters.text.demo.request import CLOSER, OPENER, TextRequest
from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count, pieces


class Written(msgspec.Struct, frozen=True):
    """The model's output in pieces, and its finish reason."""

    pieces: tuple[str, ...]
    stop_type: str
    stopping_word: str
    prompt_tokens: int

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def write_answer(request: TextRequest, model: Model = reply) -> Written:
    """Writes the model's reply as text, with calls between their marks, cut by `stop` and `n_predict`."""
    text, stop_type, word = _text(request, model), "eos", ""
    for stop in request.completion.stop:
        head, found, _ = text.partition(stop) if stop else (text, "", "")
        if found:
            text, stop_type, word = head, "word", stop
    words = pieces(text)
    if 0 <= request.completion.n_predict < len(words):
        words, stop_type, word = words[: request.completion.n_predict], "limit", ""
    return Written(tuple(words), stop_type, word, count(request.completion.prompt))


def _text(request: TextRequest, model: Model) -> str:
    schema = request.completion.json_schema
    planned = model(request.dialogue)
    if schema is not None and not planned.calls:
        return msgspec.json.encode(build_value(schema, request.dialogue.question)).decode()
    if request.prefilled and planned.calls:
        return f"{_call(planned.calls[0])}\n{CLOSER}"
    blocks = [f"{OPENER}\n{_call(call)}\n{CLOSER}" for call in planned.calls]
    # After its cue a model continues with the blank that begins a word.
    return " " + "\n".join([*([planned.text] if planned.text else []), *blocks])


def _call(call: PlannedCall) -> str:
    return msgspec.json.encode({"name": call.name, "arguments": call.arguments}).decode()


def frame(event: Json) -> bytes:
    """Encodes one server-sent event."""
    return b"data: " + msgspec.json.encode(event) + b"\n\n"


def piece_event(answer: Written, text: str, number: int) -> dict[str, Json]:
    """Builds an event with a piece of text. Some pieces of a real model are empty."""
    return {
        "index": 0,
        "content": text,
        "tokens": [],
        "stop": False,
        "id_slot": 0,
        "tokens_predicted": number,
        "tokens_evaluated": answer.prompt_tokens,
    }


def last_event(answer: Written, content: str = "") -> dict[str, Json]:
    """Builds the event that ends the response; with the content, it is the whole response as one object."""
    number = len(answer.pieces)
    ended: dict[str, Json] = {
        "stop": True,
        "model": "demo-text",
        "stop_type": answer.stop_type,
        "stopping_word": answer.stopping_word,
        "tokens_cached": answer.prompt_tokens + number,
        "truncated": False,
        "timings": {"prompt_n": answer.prompt_tokens, "predicted_n": number},
    }
    return {**piece_event(answer, content, number), **ended}


def frames(answer: Written) -> list[bytes]:
    """Returns the response piece by piece, without its last event."""
    events = [frame(piece_event(answer, text, at)) for at, text in enumerate(answer.pieces, 1)]
    return [frame(piece_event(answer, "", 0)), *events]


def error_body(status: int, message: str, kind: str, **more: Json) -> dict[str, Json]:
    """Builds the error object of the wire."""
    return {"error": {"code": status, "message": message, "type": kind, **more}}
