"""Defines the text backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.text.demo.response import Written, error_body, frame, frames, last_event, piece_event
from gateway.core.conversation import Json
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead, status_fault
from gateway.demo.player.playback import Part, Response, json_answer


def _stream(*parts: Part) -> Response:
    return Response(parts)


def _regular(answer: Written) -> Response:
    return _stream(*frames(answer), frame(last_event(answer)))


def _status(code: int, text: str, _: Options) -> Json:
    return error_body(code, text, "server_error")


def _context_length(answer: Written, options: Options) -> Response:
    text = "the request exceeds the available context size, try increasing it"
    body = error_body(400, text, "exceed_context_size_error", n_prompt_tokens=answer.prompt_tokens, n_ctx=8)
    return json_answer(body, 400)


def _forged_turn(answer: Written, options: Options) -> Response:
    """Continues the transcript with another turn and ignoress the stop sequences, as a small model does."""
    label = options["label"]
    speaker = {"result": "Tool result (call_1)"}.get(label, label)
    forged = frame(piece_event(answer, f"\n\n{speaker}: Thank you!\n\nAssistant: You are welcome.", 0))
    return _stream(*frames(answer), *(forged for _ in range(3)), frame(last_event(answer)))


def _late(answer: Written, options: Options) -> Response:
    return _stream(*_regular(answer).parts, frame(piece_event(answer, " (late)", 0)))


_WIRE: Final = WireFaults[Written]("text", _regular, lambda answer, text: frame(piece_event(answer, text, 0)))
_BROKE: Final = frame(error_body(500, "The model broke down.", "server_error"))

TEXT_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "status": status_fault(_status),
    "loading": instead(
        "503 while the model loads", "503_bare", json_answer(error_body(503, "Loading model", "unavailable_error"), 503)
    ),
    "error_first": instead("200 whose first event is an error", "error_event", _stream(_BROKE)),
    "error_frame": _WIRE.ended("an error object in the stream", "error_event", lambda *_: _BROKE),
    "bad_utf8": _WIRE.bad_utf8(),
    "huge_event": _WIRE.huge("event_too_large"),
    "context_length": Fault("400 exceed_context_size_error", "400", plays=_context_length),
    "forged_turn": Fault(
        "the model continues with the turn of another speaker (label: User, System or result)",
        options={"label": "User"},
        plays=_forged_turn,
    ),
    "late": Fault("text after the last event", "late", plays=_late),
}
