"""Defines the faults of the Responses wire: responses by name that replace the normal response or follow part of it."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway.core.conversation import JsonObject
from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.stream_faults import SSEFaults
from gateway.demo.responses.answer import Answer
from gateway.demo.responses.response import (
    Event,
    error_body,
    error_event,
    events,
    failed_event,
    frame,
    frames,
    last_event,
    numbered,
)

_JSON: Final = {"content-type": "application/json"}
# Behind the first words of a message: created, in_progress, the item, its part and two deltas come before.
_STREAM: Final = SSEFaults[Answer](frames, after=6)
_BROKE: Final = ("server_error", "The model broke down.")
_OVERLOADED: Final = ("server_is_overloaded", "The model is overloaded.")


def _status(_: Answer, options: Options) -> Response:
    status = int(options.get("code", "500"))
    kind = {429: "rate_limit_error", 400: "invalid_request_error"}.get(status, "server_error")
    body = error_body(f"The demo backend was asked to answer {status}.", kind, options.get("error_code"))
    retry: Mapping[str, str] = {"retry-after": after} if (after := options.get("retry_after")) else {}
    return Response((msgspec.json.encode(body),), status, {**_JSON, **retry})


def _quota(_: Answer, options: Options) -> Response:
    text = "You exceeded your current quota, please check your plan and billing details."
    return json_answer(error_body(text, "insufficient_quota", "insufficient_quota"), 429)


def _context_length(_: Answer, options: Options) -> Response:
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return json_answer(error_body(text, "invalid_request_error", "context_length_exceeded", "input"), 400)


def _error_first(answer: Answer, options: Options) -> Response:
    return _played((error_event(*_BROKE), failed_event(answer, *_BROKE)))


def _overloaded(answer: Answer, options: Options) -> Response:
    return _played((error_event(*_OVERLOADED), failed_event(answer, *_OVERLOADED)))


def _error_frame(answer: Answer, options: Options) -> Response:
    last = (error_event(*_BROKE), failed_event(answer, *_BROKE))
    return Response((*_STREAM.begun(answer, options), *map(frame, last)))


def _failed(answer: Answer, options: Options) -> Response:
    code = options.get("code", "server_error")
    return Response((*_STREAM.begun(answer, options), frame(failed_event(answer, code, "The model broke down."))))


def _content_filter(answer: Answer, options: Options) -> Response:
    filtered = msgspec.structs.replace(answer, calls=(), incomplete="content_filter")
    return Response(tuple(frames(filtered)))


def _bad_shape(answer: Answer, options: Options) -> Response:
    return _STREAM.around(answer, options, b'data: ["not", "an", "event"]\n\n')


def _bad_utf8(answer: Answer, options: Options) -> Response:
    marked = msgspec.structs.replace(answer, text=(*answer.text, "(?)"))
    return Response(tuple(event.replace(b"(?)", b"(\xff)") for event in frames(marked)))


def _unended_item(answer: Answer, options: Options) -> Response:
    return _played(event for event in events(answer) if event["type"] != "response.output_item.done")


def _lost_call(answer: Answer, options: Options) -> Response:
    *first, last = events(answer)
    call: Event = {"type": "function_call", "id": "fc_lost", "call_id": "call_lost", "name": "lost", "arguments": ""}
    index = len({event["output_index"] for event in first if "output_index" in event})
    return _played((*first, {"type": "response.output_item.added", "output_index": index, "item": call}, last))


def _wrong_done(answer: Answer, options: Options) -> Response:
    def changed(event: Event) -> Event:
        return {**event, "text": "Something else."} if event["type"] == "response.output_text.done" else event

    return _played(map(changed, events(answer)))


def _done_only(answer: Answer, options: Options) -> Response:
    return _played(event for event in events(answer) if not str(event["type"]).endswith(".delta"))


def _last_only(answer: Answer, options: Options) -> Response:
    return _played(event for event in events(answer) if "output_index" not in event)


def _double_finish(answer: Answer, options: Options) -> Response:
    return _played((*events(answer), last_event(answer)))


def _late(answer: Answer, options: Options) -> Response:
    late: Event = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": " (late)"}
    return _played((*events(answer), late))


def _no_usage(answer: Answer, options: Options) -> Response:
    *others, last = events(answer)
    response = last["response"]
    return _played((*others, {**last, "response": {**response, "usage": None} if isinstance(response, dict) else None}))


def _unknown_fields(answer: Answer, options: Options) -> Response:
    return _played({**event, "x_demo": {"kept": True}} for event in events(answer))


def _unknown_event(answer: Answer, options: Options) -> Response:
    event: Event = {"type": "response.x_demo.progress", "percent": 50}
    return _STREAM.around(answer, options, frame(event))


def _unknown_item(answer: Answer, options: Options) -> Response:
    """The backend searches the web before it answers."""
    created, in_progress, *others = events(answer)
    item: Event = {"type": "web_search_call", "id": "ws_demo", "status": "in_progress"}
    done: Event = {**item, "status": "completed", "action": {"type": "search", "query": "demo"}}
    place: Event = {"output_index": 0}
    searched: list[Event] = [
        {"type": "response.output_item.added", **place, "item": item},
        {"type": "response.web_search_call.searching", **place, "item_id": "ws_demo"},
        {"type": "response.output_item.done", **place, "item": done},
    ]
    return _played((created, in_progress, *searched, *map(_moved, others)))


def _moved(event: Event) -> Event:
    """Return the event with its item one place further."""
    index = event.get("output_index")
    return {**event, "output_index": index + 1} if isinstance(index, int) else event


def _huge_event(answer: Answer, options: Options) -> Response:
    size = int(float(options.get("mb", "8")) * 1024 * 1024)
    return _STREAM.around(answer, options, frame({"type": "response.output_text.delta", "delta": "x" * size}))


FAULTS: Final[Mapping[str, DemoFault[Answer]]] = {
    **_STREAM.faults(),
    "status": DemoFault("an error status: code=500, retry_after=, error_code=", _status, "500"),
    "quota": DemoFault("429 insufficient_quota", _quota, "quota"),
    "context_length": DemoFault("400 context_length_exceeded", _context_length, "400"),
    "error_first": DemoFault("200 whose first events are `error` and `response.failed`", _error_first, "error_event"),
    "overloaded": DemoFault("the same, because the model is overloaded", _overloaded, "503_bare"),
    "error_frame": DemoFault("`error` and `response.failed` in the stream: after=6", _error_frame, "error_event"),
    "failed": DemoFault("`response.failed` alone: after=6, code=server_error", _failed, "error_event"),
    "content_filter": DemoFault("an incomplete response: content_filter", _content_filter, finish="content_filter"),
    "bad_shape": DemoFault("an event of JSON with the wrong shape: after=6", _bad_shape, "malformed"),
    "bad_utf8": DemoFault("text with a broken UTF-8 byte", _bad_utf8, "utf8"),
    "unended_item": DemoFault("a finish without the end of an item", _unended_item),
    "lost_call": DemoFault("a finish without the end of a call", _lost_call, "lost_call"),
    "wrong_done": DemoFault("a whole text that differs from its pieces", _wrong_done),
    "done_only": DemoFault("whole texts and arguments without their pieces", _done_only),
    "last_only": DemoFault("the last event alone has the output", _last_only),
    "double_finish": DemoFault("a second finish after the finish", _double_finish, "twice"),
    "late": DemoFault("text after the finish", _late, "late"),
    "no_usage": DemoFault("a response without usage", _no_usage),
    "unknown_fields": DemoFault("events with unknown fields", _unknown_fields, "unknown"),
    "unknown_event": DemoFault("an event of an unknown type: after=6", _unknown_event, "unknown"),
    "unknown_item": DemoFault("an item of a tool that the backend runs itself", _unknown_item, "unknown"),
    "huge_event": DemoFault("one very large event: mb=8, after=6", _huge_event, "event_too_large"),
}


def _played(wanted: Iterable[JsonObject]) -> Response:
    return Response(tuple(frame(event) for event in numbered(wanted)))
