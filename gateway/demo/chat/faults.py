"""Defines the chat backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.chat.answer import Answer
from gateway.demo.chat.response import DONE, chunk, completion, deltas, error_body, finish_chunk, frame, usage_chunk
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Cut, Part, Response, Wait

_JSON: Final = {"content-type": "application/json"}


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


def _html(_: Answer, options: Options) -> Response:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    return Response((page,), int(options.get("code", "200")), {"content-type": "text/html"})


def _empty(_: Answer, options: Options) -> Response:
    return Response((), 200, {"content-type": options.get("type", "application/json")})


def _redirect(_: Answer, options: Options) -> Response:
    return Response((), 302, {"location": "http://127.0.0.1:9/stolen", "content-type": "application/octet-stream"})


def _error_first(_: Answer, options: Options) -> Response:
    return _stream(frame(error_body("The model is overloaded.", "server_error", "overloaded")), DONE)


def _error_frame(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), frame(error_body("The model broke down.", "server_error", "model_error")))


def _truncated(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), Cut("end"))


def _cut_mid_event(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), frame(finish_chunk(answer))[:25], Cut("end"))


def _disconnect(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), Cut("reset" if options.get("how") == "reset" else "fin"))


def _disconnect_first(answer: Answer, options: Options) -> Response:
    return _stream(Cut("reset" if options.get("how") == "reset" else "fin"))


def _stall(answer: Answer, options: Options) -> Response:
    wait = Wait(float(options.get("seconds", "3600")))
    return _stream(*_begun(answer, options), wait, *_rest(answer, options))


def _stall_first(answer: Answer, options: Options) -> Response:
    return _stream(Wait(float(options.get("seconds", "3600"))), *_whole(answer))


def _stall_headers(answer: Answer, options: Options) -> Response:
    return Response(_whole(answer), hold=float(options.get("seconds", "3600")))


def _slow(answer: Answer, options: Options) -> Response:
    wait = Wait(float(options.get("ms", "50")) / 1000)
    return _stream(*(part for found in _whole(answer) for part in (found, wait)))


def _bad_json(answer: Answer, options: Options) -> Response:
    return _stream(
        *_begun(answer, options), b'data: {"choices": [{"delta": {"content": "brok\n\n', *_rest(answer, options)
    )


def _bad_shape(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), b'data: ["not", "a", "chunk"]\n\n', *_rest(answer, options))


def _bad_utf8(answer: Answer, options: Options) -> Response:
    broken = frame(chunk(answer, {"content": "(?)"})).replace(b"(?)", b"(\xff)")
    return _stream(*_begun(answer, options), broken, *_rest(answer, options))


def _no_finish(answer: Answer, options: Options) -> Response:
    return _stream(*_frames(answer), DONE)


def _no_done(answer: Answer, options: Options) -> Response:
    return _stream(*_whole(answer)[:-1])


def _double_finish(answer: Answer, options: Options) -> Response:
    late = frame(chunk(answer, {"content": " (late)"}))
    return _stream(*_whole(answer)[:-1], late, frame(finish_chunk(answer)), DONE)


def _held_open(answer: Answer, options: Options) -> Response:
    return _stream(*_whole(answer), Wait())


def _usage_total(answer: Answer, options: Options) -> Response:
    usage: Json = {**usage_chunk(answer), "usage": {"total_tokens": answer.usage["total_tokens"]}}
    return _stream(*_frames(answer), frame(finish_chunk(answer)), frame(usage), DONE)


def _unknown_fields(answer: Answer, options: Options) -> Response:
    def strange(found: dict[str, Json]) -> bytes:
        return frame({**found, "x_demo": {"kept": True}, "provider": "demo"})

    return _stream(*(strange(found) for found in deltas(answer)), strange(finish_chunk(answer)), DONE)


def _comments(answer: Answer, options: Options) -> Response:
    return _stream(*(part for found in _whole(answer) for part in (b": still here \xe2\x80\xa6\n\n", found)))


def _bytewise(answer: Answer, options: Options) -> Response:
    size = max(1, int(options.get("chunk", "1")))
    wire = b"".join(_whole(answer))
    return _stream(*(wire[at : at + size] for at in range(0, len(wire), size)))


def _huge_event(answer: Answer, options: Options) -> Response:
    size = int(float(options.get("mb", "8")) * 1024 * 1024)
    return _stream(*_begun(answer, options), frame(chunk(answer, {"content": "x" * size})), *_rest(answer, options))


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    "status": DemoFault("an error status: code=500, retry_after=, error_code=", _status, "500"),
    "quota": DemoFault("429 insufficient_quota", _quota, "quota"),
    "context_length": DemoFault("400 context_length_exceeded", _context_length, "400"),
    "html": DemoFault("a web page instead of a response: code=200", _html, "page"),
    "empty": DemoFault("200 without a body: type=application/json", _empty, "hollow"),
    "redirect": DemoFault("302 to another address", _redirect, "redirect"),
    "error_first": DemoFault("200 whose first event is an error", _error_first, "error_event"),
    "error_frame": DemoFault("an error object in the stream: after=3 chunks", _error_frame, "error_event"),
    "truncated": DemoFault("a well-formed end before the finish: after=3", _truncated, "no_finish"),
    "cut_mid_event": DemoFault("a well-formed end inside an event: after=3", _cut_mid_event, "truncated"),
    "disconnect": DemoFault("the connection breaks: after=3, how=fin|reset", _disconnect, "truncated"),
    "disconnect_first": DemoFault(
        "the connection breaks before the first chunk: how=fin|reset", _disconnect_first, "truncated"
    ),
    "stall": DemoFault("silence in the middle: after=3, seconds=3600", _stall, "stall"),
    "stall_first": DemoFault("silence before the first chunk: seconds=3600", _stall_first, "stall"),
    "stall_headers": DemoFault("silence instead of a status: seconds=3600", _stall_headers, "no_head"),
    "slow": DemoFault("a pause between chunks: ms=50", _slow),
    "bad_json": DemoFault("a chunk with invalid JSON: after=3", _bad_json, "malformed"),
    "bad_shape": DemoFault("a chunk of JSON with the wrong shape: after=3", _bad_shape, "malformed"),
    "bad_utf8": DemoFault("a chunk with a broken UTF-8 byte: after=3", _bad_utf8, "utf8"),
    "no_finish": DemoFault("[DONE] without a finish_reason", _no_finish, "no_finish"),
    "no_done": DemoFault("a finish_reason without [DONE]", _no_done),
    "double_finish": DemoFault("text and a second finish after the finish", _double_finish, "twice"),
    "held_open": DemoFault("a complete response on a connection that stays open", _held_open, "held"),
    "usage_total": DemoFault("usage with only a total", _usage_total),
    "unknown_fields": DemoFault("chunks with unknown fields", _unknown_fields, "unknown"),
    "comments": DemoFault("comment lines between chunks", _comments, "comments"),
    "bytewise": DemoFault("the stream in small writes: chunk=1", _bytewise, "split"),
    "huge_event": DemoFault("one very large chunk: mb=8, after=3", _huge_event, "event_too_large"),
}


def as_object(fault: Response, answer: Answer) -> Response:
    """Convert the fault for a client that did not request a stream: what happens to the stream happens to the one
    object."""
    if dict(fault.headers).get("content-type") != "text/event-stream":
        return fault
    body = msgspec.json.encode(completion(answer))
    events = [part for part in fault.parts if not isinstance(part, bytes)]
    whole = not any(isinstance(event, Cut) for event in events)
    half = len(body) // 2
    return Response((body[:half], *events, body[half:] if whole else b""), 200, _JSON, fault.hold)


def _json(status: int, body: Json, headers: Mapping[str, str] | None = None) -> Response:
    return Response((msgspec.json.encode(body),), status, {**_JSON, **(headers or {})})


def _stream(*parts: Part) -> Response:
    return Response(parts)


def _frames(answer: Answer) -> list[bytes]:
    return [frame(found) for found in deltas(answer)]


def _whole(answer: Answer) -> list[bytes]:
    return [*_frames(answer), frame(finish_chunk(answer)), DONE]


def _begun(answer: Answer, options: Options) -> Iterable[bytes]:
    return _frames(answer)[: int(options.get("after", "3"))]


def _rest(answer: Answer, options: Options) -> Iterable[bytes]:
    return _whole(answer)[int(options.get("after", "3")) :]
