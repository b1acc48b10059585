"""Defines the chat backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.openai.demo import error_body, refusals
from adapters.openai_chat.demo.answer import Answer
from adapters.openai_chat.demo.chunk_faults import CHUNK_FAULTS
from adapters.openai_chat.demo.refusals import REFUSALS
from adapters.openai_chat.demo.response import DONE, chunk, deltas, finish_chunk, frame, usage_chunk
from gateway.core.conversation import Json
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead
from gateway.demo.player.playback import Part, Response


def _played(*parts: Part) -> Response:
    return Response(parts)


def _regular(answer: Answer) -> Response:
    return _played(*_frames(answer), frame(finish_chunk(answer)), DONE)


def _frames(answer: Answer) -> list[bytes]:
    return [frame(found) for found in deltas(answer)]


def _text(answer: Answer, text: str) -> bytes:
    return frame(chunk(answer, {"content": text}))


def _cut_call(answer: Answer, options: Options) -> Response:
    function: Json = {"name": "write_file", "arguments": '{"path":"a.py","content":"def'}
    call: Json = {"index": 0, "id": "call_cut", "type": "function", "function": function}
    cut = frame(chunk(answer, {"tool_calls": [call]}))
    return _played(*_frames(answer), cut, frame(chunk(answer, {}, "tool_calls")), DONE)


def _no_finish(answer: Answer, options: Options) -> Response:
    return _played(*_frames(answer), DONE)


def _double_finish(answer: Answer, options: Options) -> Response:
    late = frame(chunk(answer, {"content": " (late)"}))
    finish = frame(finish_chunk(answer))
    return _played(*_frames(answer), finish, late, finish, DONE)


def _usage_total(answer: Answer, options: Options) -> Response:
    usage: Json = {**usage_chunk(answer), "usage": {"total_tokens": answer.usage["total_tokens"]}}
    return _played(*_frames(answer), frame(finish_chunk(answer)), frame(usage), DONE)


_WIRE: Final = WireFaults[Answer]("chat", _regular, _text)
_TOO_LONG: Final = "This model's maximum context length is 8 tokens. Please reduce the length of the messages."
_OVERLOADED: Final = frame(error_body("The model is overloaded.", "server_error", "overloaded"))
_BROKE: Final = frame(error_body("The model broke down.", "server_error", "model_error"))

CHAT_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    **CHUNK_FAULTS,
    **REFUSALS,
    **refusals(_TOO_LONG, "messages"),
    "error_first": instead("200 whose first event is an error", "error_event", _played(_OVERLOADED, DONE)),
    "error_frame": _WIRE.ended("an error object in the stream", "error_event", lambda *_: _BROKE),
    "bad_shape": _WIRE.inserted(
        "a chunk of JSON with the wrong shape", "malformed", lambda *_: b'data: ["not", "a", "chunk"]\n\n'
    ),
    "bad_utf8": _WIRE.bad_utf8(),
    "huge_event": _WIRE.huge("event_too_large"),
    "cut_call": Fault("a call whose arguments break off, finished as complete", "lost_call", plays=_cut_call),
    "no_finish": Fault("[DONE] without a finish_reason", "no_finish", plays=_no_finish),
    "double_finish": Fault("text and a second finish after the finish", "twice", plays=_double_finish),
    "usage_total": Fault("usage with only a total", plays=_usage_total),
}
