"""Defines the Messages backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.demo.messages.answer import Answer
from gateway.demo.messages.response import Event, block_events, error_body, frame, frames, stream
from gateway.demo.messages.thinking import redact
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Response, Wait
from gateway.demo.player.stream_faults import SSEFaults

_JSON: Final = {"content-type": "application/json"}
# Behind the first words: the start of the message, of its first block, and a ping come before.
_STREAM: Final = SSEFaults[Answer](frames, after=4)
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


def _error_first(_: Answer, options: Options) -> Response:
    return Response((_error(options),))


def _error_event(answer: Answer, options: Options) -> Response:
    return Response((*_STREAM.begun(answer, options), _error(options)))


def _pings(answer: Answer, options: Options) -> Response:
    """Send nothing but pings, which keep the connection open and the response unfinished."""
    pause = Wait(float(options.get("ms", "20")) / 1000)
    ping = frame({"type": "ping"})
    pings = [part for _ in range(int(options.get("count", "5000"))) for part in (ping, pause)]
    return _STREAM.around(answer, options, *pings)


def _bad_order(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "?"}
    lost = frame({"type": "content_block_delta", "index": 99, "delta": delta})
    return _STREAM.around(answer, options, lost)


def _bad_utf8(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "(?)"}
    broken = frame({"type": "content_block_delta", "index": 0, "delta": delta}).replace(b"(?)", b"(\xff)")
    return _STREAM.around(answer, options, broken)


def _no_stop(answer: Answer, options: Options) -> Response:
    return Response(frames(answer)[:-1])


def _no_reason(answer: Answer, options: Options) -> Response:
    *before, _, last = frames(answer)
    return Response([*before, last])


def _late(answer: Answer, options: Options) -> Response:
    late = block_events(99, {"type": "text", "text": ""}, [{"type": "text_delta", "text": " (late)"}])
    return Response([*frames(answer), *map(frame, late)])


def _twice(answer: Answer, options: Options) -> Response:
    return Response([*frames(answer), *frames(answer)[-2:]])


def _redacted(answer: Answer, options: Options) -> Response:
    return _appended(answer, ({"type": "redacted_thinking", "data": redact("hidden")}, []))


def _server_tool(answer: Answer, options: Options) -> Response:
    call: dict[str, Json] = {"type": "server_tool_use", "id": "srvtoolu_demo", "name": "web_search", "input": {}}
    query: dict[str, Json] = {"type": "input_json_delta", "partial_json": '{"query":"demo"}'}
    result: dict[str, Json] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_demo", "content": []}
    return _appended(answer, (call, [query]), (result, []))


def _unknown_events(answer: Answer, options: Options) -> Response:
    strange = frame({"type": "telemetry", "news": {"of": ["tomorrow"]}})
    return Response(tuple(part for found in frames(answer) for part in (strange, found)))


def _huge_event(answer: Answer, options: Options) -> Response:
    delta: Json = {"type": "text_delta", "text": "x" * int(float(options.get("mb", "8")) * 1024 * 1024)}
    huge = frame({"type": "content_block_delta", "index": 0, "delta": delta})
    return _STREAM.around(answer, options, huge)


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    **_STREAM.faults(),
    "status": DemoFault("an error status: code=500, retry_after=", _status, "500"),
    "overloaded": DemoFault("529 overloaded_error", _overloaded, "503_bare"),
    "context_length": DemoFault("400 because the prompt is too long", _context_length, "400"),
    "error_first": DemoFault("200 whose first event is an error: type=api_error", _error_first, "error_event"),
    "error_event": DemoFault("an error event in the stream: after=4, type=api_error", _error_event, "error_event"),
    "pings": DemoFault("nothing but pings in the middle: after=4, ms=20, count=5000", _pings, "stall"),
    "bad_order": DemoFault("a delta of a block that has not begun: after=4", _bad_order, "malformed"),
    "bad_utf8": DemoFault("an event with a broken UTF-8 byte: after=4", _bad_utf8, "utf8"),
    "no_stop": DemoFault("a stop reason without message_stop", _no_stop, "no_finish"),
    "no_reason": DemoFault("message_stop without a stop reason", _no_reason, "no_finish"),
    "late": DemoFault("text after message_stop", _late, "late"),
    "twice": DemoFault("a second stop reason and message_stop", _twice, "twice"),
    "redacted": DemoFault("redacted thinking behind the text", _redacted),
    "server_tool": DemoFault("a web search that the backend has made itself", _server_tool, "unknown"),
    "unknown_events": DemoFault("events of an unknown type", _unknown_events, "unknown"),
    "huge_event": DemoFault("one very large event: mb=8, after=4", _huge_event, "event_too_large"),
}


def _appended(answer: Answer, *blocks: tuple[Event, list[Event]]) -> Response:
    """Put more blocks, each with its deltas, behind those of the answer."""
    *before, reason, stop = stream(answer)
    index = sum(event["type"] == "content_block_start" for event in before)
    more = [
        event for number, (block, deltas) in enumerate(blocks, index) for event in block_events(number, block, deltas)
    ]
    return Response(tuple(frame(event) for event in (*before, *more, reason, stop)))


def _error(options: Options) -> bytes:
    return frame(error_body("The model broke down.", options.get("type", "api_error")))


def _json(status: int, body: Json, headers: Mapping[str, str] | None = None) -> Response:
    return Response((msgspec.json.encode(body),), status, {**_JSON, **(headers or {})})
