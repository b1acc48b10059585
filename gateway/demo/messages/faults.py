"""Defines the Messages backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.messages.answer import Answer
from gateway.demo.messages.response import Event, block_events, error_body, frame, message, message_delta, stream
from gateway.demo.messages.thinking import redact
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Cut, Part, Response, Wait

_JSON: Final = {"content-type": "application/json"}
_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _status(_: Answer, options: Options) -> Response:
    status = int(options.get("code", "500"))
    body = error_body(f"The demo backend was asked to answer {status}.", _TYPES.get(status, "api_error"))
    return _json(status, body, {"retry-after": after} if (after := options.get("retry_after")) else {})


def _overloaded(_: Answer, options: Options) -> Response:
    return _json(529, error_body("Overloaded", "overloaded_error"))


def _context_length(_: Answer, options: Options) -> Response:
    return _json(400, error_body("prompt is too long: 9 tokens > 8 maximum", "invalid_request_error"))


def _html(_: Answer, options: Options) -> Response:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    return Response((page,), int(options.get("code", "200")), {"content-type": "text/html"})


def _empty(_: Answer, options: Options) -> Response:
    return Response((), 200, {"content-type": options.get("type", "application/json")})


def _redirect(_: Answer, options: Options) -> Response:
    return Response((), 302, {"location": "http://127.0.0.1:9/stolen", "content-type": "application/octet-stream"})


def _error_first(_: Answer, options: Options) -> Response:
    return _stream(_error(options))


def _error_event(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), _error(options))


def _truncated(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), Cut("end"))


def _cut_mid_event(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), frame(message_delta(answer))[:45], Cut("end"))


def _disconnect(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), Cut("reset" if options.get("how") == "reset" else "fin"))


def _disconnect_first(answer: Answer, options: Options) -> Response:
    return _stream(Cut("reset" if options.get("how") == "reset" else "fin"))


def _stall(answer: Answer, options: Options) -> Response:
    return _stream(*_begun(answer, options), _wait(options), *_rest(answer, options))


def _stall_first(answer: Answer, options: Options) -> Response:
    return _stream(_wait(options), *_frames(answer))


def _stall_headers(answer: Answer, options: Options) -> Response:
    return Response(_frames(answer), hold=_wait(options).seconds)


def _pings(answer: Answer, options: Options) -> Response:
    """Send nothing but pings, which keep the connection open and the response unfinished."""
    pause = Wait(float(options.get("ms", "20")) / 1000)
    ping = frame({"type": "ping"})
    pings = [part for _ in range(int(options.get("count", "5000"))) for part in (ping, pause)]
    return _stream(*_begun(answer, options), *pings, *_rest(answer, options))


def _slow(answer: Answer, options: Options) -> Response:
    wait = Wait(float(options.get("ms", "50")) / 1000)
    return _stream(*(part for found in _frames(answer) for part in (found, wait)))


def _bad_json(answer: Answer, options: Options) -> Response:
    broken = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":"brok\n\n'
    return _stream(*_begun(answer, options), broken, *_rest(answer, options))


def _bad_order(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "?"}
    lost = frame({"type": "content_block_delta", "index": 99, "delta": delta})
    return _stream(*_begun(answer, options), lost, *_rest(answer, options))


def _bad_utf8(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "(?)"}
    broken = frame({"type": "content_block_delta", "index": 0, "delta": delta}).replace(b"(?)", b"(\xff)")
    return _stream(*_begun(answer, options), broken, *_rest(answer, options))


def _no_stop(answer: Answer, options: Options) -> Response:
    return _stream(*_frames(answer)[:-1])


def _no_reason(answer: Answer, options: Options) -> Response:
    *before, _, last = _frames(answer)
    return _stream(*before, last)


def _late(answer: Answer, options: Options) -> Response:
    late = block_events(99, {"type": "text", "text": ""}, [{"type": "text_delta", "text": " (late)"}])
    return _stream(*_frames(answer), *(frame(event) for event in late))


def _twice(answer: Answer, options: Options) -> Response:
    return _stream(*_frames(answer), *_frames(answer)[-2:])


def _held_open(answer: Answer, options: Options) -> Response:
    return _stream(*_frames(answer), Wait())


def _redacted(answer: Answer, options: Options) -> Response:
    return _appended(answer, ({"type": "redacted_thinking", "data": redact("hidden")}, []))


def _server_tool(answer: Answer, options: Options) -> Response:
    call: dict[str, Json] = {"type": "server_tool_use", "id": "srvtoolu_demo", "name": "web_search", "input": {}}
    query: dict[str, Json] = {"type": "input_json_delta", "partial_json": '{"query":"demo"}'}
    result: dict[str, Json] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_demo", "content": []}
    return _appended(answer, (call, [query]), (result, []))


def _unknown_events(answer: Answer, options: Options) -> Response:
    strange = frame({"type": "telemetry", "news": {"of": ["tomorrow"]}})
    return _stream(*(part for found in _frames(answer) for part in (strange, found)))


def _comments(answer: Answer, options: Options) -> Response:
    return _stream(*(part for found in _frames(answer) for part in (b": still here \xe2\x80\xa6\n\n", found)))


def _bytewise(answer: Answer, options: Options) -> Response:
    size = max(1, int(options.get("chunk", "1")))
    wire = b"".join(_frames(answer))
    return _stream(*(wire[at : at + size] for at in range(0, len(wire), size)))


def _huge_event(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "x" * int(float(options.get("mb", "8")) * 1024 * 1024)}
    huge = frame({"type": "content_block_delta", "index": 0, "delta": delta})
    return _stream(*_begun(answer, options), huge, *_rest(answer, options))


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    "status": DemoFault("an error status: code=500, retry_after=", _status, "500"),
    "overloaded": DemoFault("529 overloaded_error", _overloaded, "503_bare"),
    "context_length": DemoFault("400 because the prompt is too long", _context_length, "400"),
    "html": DemoFault("a web page instead of a response: code=200", _html, "page"),
    "empty": DemoFault("200 without a body: type=application/json", _empty, "hollow"),
    "redirect": DemoFault("302 to another address", _redirect, "redirect"),
    "error_first": DemoFault("200 whose first event is an error: type=api_error", _error_first, "error_event"),
    "error_event": DemoFault(
        "an error event in the stream: after=4 events, type=api_error", _error_event, "error_event"
    ),
    "truncated": DemoFault("a well-formed end before the last event: after=4", _truncated, "no_finish"),
    "cut_mid_event": DemoFault("a well-formed end inside an event: after=4", _cut_mid_event, "truncated"),
    "disconnect": DemoFault("the connection breaks: after=4, how=fin|reset", _disconnect, "truncated"),
    "disconnect_first": DemoFault(
        "the connection breaks before the first event: how=fin|reset", _disconnect_first, "truncated"
    ),
    "stall": DemoFault("silence in the middle: after=4, seconds=3600", _stall, "stall"),
    "stall_first": DemoFault("silence before the first event: seconds=3600", _stall_first, "stall"),
    "stall_headers": DemoFault("silence instead of a status: seconds=3600", _stall_headers, "no_head"),
    "pings": DemoFault("nothing but pings in the middle: after=4, ms=20, count=5000", _pings, "stall"),
    "slow": DemoFault("a pause between events: ms=50", _slow),
    "bad_json": DemoFault("an event with invalid JSON: after=4", _bad_json, "malformed"),
    "bad_order": DemoFault("a delta of a block that has not begun: after=4", _bad_order, "malformed"),
    "bad_utf8": DemoFault("an event with a broken UTF-8 byte: after=4", _bad_utf8, "utf8"),
    "no_stop": DemoFault("a stop reason without message_stop", _no_stop, "no_finish"),
    "no_reason": DemoFault("message_stop without a stop reason", _no_reason, "no_finish"),
    "late": DemoFault("text after message_stop", _late, "late"),
    "twice": DemoFault("a second stop reason and message_stop", _twice, "twice"),
    "held_open": DemoFault("a complete response on a connection that stays open", _held_open, "held"),
    "redacted": DemoFault("redacted thinking behind the text", _redacted),
    "server_tool": DemoFault("a web search that the backend has made itself", _server_tool, "unknown"),
    "unknown_events": DemoFault("events of an unknown type", _unknown_events, "unknown"),
    "comments": DemoFault("comment lines between events", _comments, "comments"),
    "bytewise": DemoFault("the stream in small writes: chunk=1", _bytewise, "split"),
    "huge_event": DemoFault("one very large event: mb=8, after=4", _huge_event, "event_too_large"),
}


def as_object(fault: Response, answer: Answer) -> Response:
    """Convert the fault for a client that did not request a stream: what happens to the stream happens to the one
    object."""
    if dict(fault.headers).get("content-type") != "text/event-stream":
        return fault
    body = msgspec.json.encode(message(answer))
    events = [part for part in fault.parts if not isinstance(part, bytes)]
    whole = not any(isinstance(event, Cut) for event in events)
    half = len(body) // 2
    return Response((body[:half], *events, body[half:] if whole else b""), 200, _JSON, fault.hold)


def _appended(answer: Answer, *blocks: tuple[Event, list[Event]]) -> Response:
    """Put more blocks, each with its deltas, behind those of the answer."""
    *before, reason, stop = stream(answer)
    index = sum(event["type"] == "content_block_start" for event in before)
    more = [
        event for number, (block, deltas) in enumerate(blocks, index) for event in block_events(number, block, deltas)
    ]
    return _stream(*(frame(event) for event in (*before, *more, reason, stop)))


def _error(options: Options) -> bytes:
    return frame(error_body("The model broke down.", options.get("type", "api_error")))


def _wait(options: Options) -> Wait:
    return Wait(float(options.get("seconds", "3600")))


def _json(status: int, body: Json, headers: Mapping[str, str] | None = None) -> Response:
    return Response((msgspec.json.encode(body),), status, {**_JSON, **(headers or {})})


def _stream(*parts: Part) -> Response:
    return Response(parts)


def _frames(answer: Answer) -> list[bytes]:
    return [frame(event) for event in stream(answer)]


def _begun(answer: Answer, options: Options) -> list[bytes]:
    return _frames(answer)[: _after(options)]


def _rest(answer: Answer, options: Options) -> list[bytes]:
    return _frames(answer)[_after(options) :]


def _after(options: Options) -> int:
    return int(options.get("after", "4"))
