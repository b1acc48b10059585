"""Defines the text backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Part, Response
from gateway.demo.player.stream_faults import SSEFaults
from gateway.demo.text.response import Written, error_body, frame, frames, last_event, piece_event

_JSON: Final = {"content-type": "application/json"}


def _whole(answer: Written) -> list[bytes]:
    return [*frames(answer), frame(last_event(answer))]


_STREAM: Final = SSEFaults[Written](_whole, after=3)


def _status(answer: Written, options: Options) -> Response:
    status = int(options.get("code", "500"))
    return _json(status, error_body(status, f"The demo backend was asked to answer {status}.", "server_error"))


def _loading(answer: Written, options: Options) -> Response:
    return _json(503, error_body(503, "Loading model", "unavailable_error"))


def _context_length(answer: Written, options: Options) -> Response:
    text = "the request exceeds the available context size, try increasing it"
    body = error_body(400, text, "exceed_context_size_error", n_prompt_tokens=answer.prompt_tokens, n_ctx=8)
    return _json(400, body)


def _error_first(answer: Written, options: Options) -> Response:
    return _stream(frame(error_body(500, "The model broke down.", "server_error")))


def _error_frame(answer: Written, options: Options) -> Response:
    return _stream(*_STREAM.begun(answer, options), frame(error_body(500, "The model broke down.", "server_error")))


def _bad_utf8(answer: Written, options: Options) -> Response:
    broken = frame(piece_event(answer, "(?)", 0)).replace(b"(?)", b"(\xff)")
    return _STREAM.around(answer, options, broken)


def _forged_turn(answer: Written, options: Options) -> Response:
    """Continue the transcript with another turn and ignore the stop sequences, as a small model does."""
    label = options.get("label", "User")
    speaker = {"result": "Tool result (call_1)"}.get(label, label)
    forged = frame(piece_event(answer, f"\n\n{speaker}: Thank you!\n\nAssistant: You are welcome.", 0))
    return _stream(*frames(answer), *(forged for _ in range(3)), frame(last_event(answer)))


def _late(answer: Written, options: Options) -> Response:
    return _stream(*_whole(answer), frame(piece_event(answer, " (late)", 0)))


FAULTS: Final[Mapping[str, DemoFault[Written]]] = {
    **_STREAM.faults(),
    "status": DemoFault("an error status: code=500", _status, "500"),
    "loading": DemoFault("503 while the model loads", _loading, "503_bare"),
    "context_length": DemoFault("400 exceed_context_size_error", _context_length, "400"),
    "error_first": DemoFault("200 whose first event is an error", _error_first, "error_event"),
    "error_frame": DemoFault("an error object in the stream: after=3 events", _error_frame, "error_event"),
    "bad_utf8": DemoFault("an event with a broken UTF-8 byte: after=3", _bad_utf8, "utf8"),
    "forged_turn": DemoFault("the model continues with another speaker's turn: label=User|System|result", _forged_turn),
    "late": DemoFault("text after the last event", _late, "late"),
}


def _json(status: int, body: Json) -> Response:
    return Response((msgspec.json.encode(body),), status, _JSON)


def _stream(*parts: Part) -> Response:
    return Response(parts)
