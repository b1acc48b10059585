"""Defines the Messages backend's faults: responses by name that replace the normal response or follow part of it."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.anthropic_messages.demo.answer import Answer
from adapters.anthropic_messages.demo.response import Event, block_events, error_body, frame, frames, stream
from adapters.anthropic_messages.demo.thinking import redact
from gateway.core.conversation import Json
from gateway.demo.faults.editing import Options, around
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead, status_fault
from gateway.demo.player.playback import Response, Wait, json_answer

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


def _regular(answer: Answer) -> Response:
    return Response(frames(answer))


def _delta(text: str, index: int = 0) -> bytes:
    return frame({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})


def _error(_: Answer, options: Options) -> bytes:
    return frame(error_body("The model broke down.", options["type"]))


def _status(code: int, text: str, _: Options) -> Json:
    return error_body(text, _TYPES.get(code, "api_error"))


def _pings(answer: Answer, options: Options) -> Response:
    """Sends nothing but pings, which keep the connection open and the response unfinished."""
    pause = Wait(float(options["ms"]) / 1000)
    ping = frame({"type": "ping"})
    pings = [part for _ in range(int(options["count"])) for part in (ping, pause)]
    return around(_regular(answer), options, *pings)


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


_WIRE: Final = WireFaults[Answer]("messages", _regular, lambda _, text: _delta(text))
_TOO_LONG: Final = error_body("prompt is too long: 9 tokens > 8 maximum", "invalid_request_error")

MESSAGES_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "status": status_fault(_status),
    "overloaded": instead(
        "529 overloaded_error", "503_bare", json_answer(error_body("Overloaded", "overloaded_error"), 529)
    ),
    "context_length": instead("400 because the prompt is too long", "400", json_answer(_TOO_LONG, 400)),
    "error_first": Fault(
        "200 whose first event is an error",
        "error_event",
        options={"type": "api_error"},
        plays=lambda answer, options: Response((_error(answer, options),)),
    ),
    "error_event": _WIRE.ended("an error event in the stream", "error_event", _error, type="api_error"),
    "bad_order": _WIRE.inserted("a delta of a block that has not begun", "malformed", lambda *_: _delta("?", 99)),
    "bad_utf8": _WIRE.bad_utf8(),
    "huge_event": _WIRE.huge("event_too_large"),
    "pings": Fault(
        "nothing but pings in the middle", "stall", options={"after": "4", "ms": "20", "count": "5000"}, plays=_pings
    ),
    "no_stop": Fault("a stop reason without message_stop", "no_finish", plays=_no_stop),
    "no_reason": Fault("message_stop without a stop reason", "no_finish", plays=_no_reason),
    "late": Fault("text after message_stop", "late", plays=_late),
    "twice": Fault("a second stop reason and message_stop", "twice", plays=_twice),
    "redacted": Fault("redacted thinking behind the text", plays=_redacted),
    "server_tool": Fault("a web search that the backend has made itself", "unknown", plays=_server_tool),
    "unknown_events": Fault("events of an unknown type", "unknown", plays=_unknown_events),
}


def _appended(answer: Answer, *blocks: tuple[Event, list[Event]]) -> Response:
    """Puts more blocks, each with its deltas, behind those of the answer."""
    *before, reason, stop = stream(answer)
    index = sum(event["type"] == "content_block_start" for event in before)
    more = [
        event for number, (block, deltas) in enumerate(blocks, index) for event in block_events(number, block, deltas)
    ]
    return Response(tuple(frame(event) for event in (*before, *more, reason, stop)))
