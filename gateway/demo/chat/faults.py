"""Defines the chat backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.chat.answer import Answer
from gateway.demo.chat.response import DONE, chunk, deltas, error_body, finish_chunk, frame, usage_chunk
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Cut, Part, Response
from gateway.demo.player.stream_faults import SSEFaults

_JSON: Final = {"content-type": "application/json"}


def _frames(answer: Answer) -> list[bytes]:
    return [frame(found) for found in deltas(answer)]


def _whole(answer: Answer) -> list[bytes]:
    return [*_frames(answer), frame(finish_chunk(answer)), DONE]


_STREAM: Final = SSEFaults[Answer](_whole, after=3)


def _status(_: Answer, options: Options) -> Response:
    status = int(options.get("code", "500"))
    kind = {429: "rate_limit_error", 400: "invalid_request_error"}.get(status, "server_error")
    body = error_body(f"The demo backend was asked to answer {status}.", kind, options.get("error_code"))
    return _json(status, body, {"retry-after": after} if (after := options.get("retry_after")) else {})


def _quota(_: Answer, options: Options) -> Response:
    text = "You exceeded your current quota, please check your plan and billing details."
    return _json(429, error_body(text, "insufficient_quota", "insufficient_quota"))


def _context_length(_: Answer, options: Options) -> Response:
    text = "This model's maximum context length is 8 tokens. Please reduce the length of the messages."
    return _json(400, error_body(text, "invalid_request_error", "context_length_exceeded", "messages"))


def _error_first(_: Answer, options: Options) -> Response:
    return _played(frame(error_body("The model is overloaded.", "server_error", "overloaded")), DONE)


def _error_frame(answer: Answer, options: Options) -> Response:
    return Response(
        (*_STREAM.begun(answer, options), frame(error_body("The model broke down.", "server_error", "model_error")))
    )


def _cut_mid_event(answer: Answer, options: Options) -> Response:
    return _played(*_STREAM.begun(answer, options), frame(finish_chunk(answer))[:25], Cut("end"))


def _cut_call(answer: Answer, options: Options) -> Response:
    function: Json = {"name": "write_file", "arguments": '{"path":"a.py","content":"def'}
    call: Json = {"index": 0, "id": "call_cut", "type": "function", "function": function}
    cut = frame(chunk(answer, {"tool_calls": [call]}))
    return _played(*_frames(answer), cut, frame(chunk(answer, {}, "tool_calls")), DONE)


def _bad_shape(answer: Answer, options: Options) -> Response:
    return _STREAM.around(answer, options, b'data: ["not", "a", "chunk"]\n\n')


def _bad_utf8(answer: Answer, options: Options) -> Response:
    broken = frame(chunk(answer, {"content": "(?)"})).replace(b"(?)", b"(\xff)")
    return _STREAM.around(answer, options, broken)


def _no_finish(answer: Answer, options: Options) -> Response:
    return _played(*_frames(answer), DONE)


def _no_done(answer: Answer, options: Options) -> Response:
    return _played(*_whole(answer)[:-1])


def _double_finish(answer: Answer, options: Options) -> Response:
    late = frame(chunk(answer, {"content": " (late)"}))
    return _played(*_whole(answer)[:-1], late, frame(finish_chunk(answer)), DONE)


def _usage_total(answer: Answer, options: Options) -> Response:
    usage: Json = {**usage_chunk(answer), "usage": {"total_tokens": answer.usage["total_tokens"]}}
    return _played(*_frames(answer), frame(finish_chunk(answer)), frame(usage), DONE)


def _unknown_fields(answer: Answer, options: Options) -> Response:
    def strange(found: dict[str, Json]) -> bytes:
        return frame({**found, "x_demo": {"kept": True}, "provider": "demo"})

    return _played(*(strange(found) for found in deltas(answer)), strange(finish_chunk(answer)), DONE)


def _huge_event(answer: Answer, options: Options) -> Response:
    size = int(float(options.get("mb", "8")) * 1024 * 1024)
    return _STREAM.around(answer, options, frame(chunk(answer, {"content": "x" * size})))


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    **_STREAM.faults(),
    "status": DemoFault("an error status: code=500, retry_after=, error_code=", _status, "500"),
    "quota": DemoFault("429 insufficient_quota", _quota, "quota"),
    "context_length": DemoFault("400 context_length_exceeded", _context_length, "400"),
    "error_first": DemoFault("200 whose first event is an error", _error_first, "error_event"),
    "error_frame": DemoFault("an error object in the stream: after=3 chunks", _error_frame, "error_event"),
    "cut_mid_event": DemoFault("a well-formed end inside an event: after=3", _cut_mid_event, "truncated"),
    "cut_call": DemoFault("a call whose arguments break off, finished as complete", _cut_call, "lost_call"),
    "bad_shape": DemoFault("a chunk of JSON with the wrong shape: after=3", _bad_shape, "malformed"),
    "bad_utf8": DemoFault("a chunk with a broken UTF-8 byte: after=3", _bad_utf8, "utf8"),
    "no_finish": DemoFault("[DONE] without a finish_reason", _no_finish, "no_finish"),
    "no_done": DemoFault("a finish_reason without [DONE]", _no_done),
    "double_finish": DemoFault("text and a second finish after the finish", _double_finish, "twice"),
    "usage_total": DemoFault("usage with only a total", _usage_total),
    "unknown_fields": DemoFault("chunks with unknown fields", _unknown_fields, "unknown"),
    "huge_event": DemoFault("one very large chunk: mb=8, after=3", _huge_event, "event_too_large"),
}


def _json(status: int, body: Json, headers: Mapping[str, str] | None = None) -> Response:
    return Response((msgspec.json.encode(body),), status, {**_JSON, **(headers or {})})


def _played(*parts: Part) -> Response:
    return Response(parts)
