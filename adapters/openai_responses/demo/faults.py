"""Defines the faults of the Responses wire: responses by name that replace the normal response or follow part of it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from adapters.openai.demo import refusals
from adapters.openai_responses.demo.answer import Answer
from adapters.openai_responses.demo.response import (
    Event,
    error_event,
    events,
    failed_event,
    frame,
    frames,
    last_event,
    numbered,
)
from gateway.core.conversation import JsonObject
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults
from gateway.demo.player.playback import Response

_BROKE: Final = ("server_error", "The model broke down.")
_OVERLOADED: Final = ("server_is_overloaded", "The model is overloaded.")


def _regular(answer: Answer) -> Response:
    return Response(tuple(frames(answer)))


def _error_first(answer: Answer, options: Options) -> Response:
    return _played((error_event(*_BROKE), failed_event(answer, *_BROKE)))


def _overloaded(answer: Answer, options: Options) -> Response:
    return _played((error_event(*_OVERLOADED), failed_event(answer, *_OVERLOADED)))


def _failed(answer: Answer, options: Options) -> bytes:
    return frame(failed_event(answer, options["code"], "The model broke down."))


def _content_filter(answer: Answer, options: Options) -> Response:
    filtered = msgspec.structs.replace(answer, calls=(), incomplete="content_filter")
    return Response(tuple(frames(filtered)))


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


def _usage_null(answer: Answer, options: Options) -> Response:
    *others, last = events(answer)
    response = last["response"]
    return _played((*others, {**last, "response": {**response, "usage": None} if isinstance(response, dict) else None}))


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
    """Returns the event with its item one place further."""
    index = event.get("output_index")
    return {**event, "output_index": index + 1} if isinstance(index, int) else event


def _text(_: Answer, text: str) -> bytes:
    return frame({"type": "response.output_text.delta", "delta": text})


_WIRE: Final = WireFaults[Answer]("responses", _regular, _text)
_TOO_LONG: Final = "Your input exceeds the context window of this model. Please adjust your input and try again."
_PROGRESS: Final[Event] = {"type": "response.x_demo.progress", "percent": 50}

RESPONSES_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    **refusals(_TOO_LONG, "input"),
    "error_frame": _WIRE.ended(
        "`error` and `response.failed` in the stream",
        "error_event",
        lambda answer, _: frame(error_event(*_BROKE)) + frame(failed_event(answer, *_BROKE)),
    ),
    "failed": _WIRE.ended("`response.failed` alone", "error_event", _failed, code="server_error"),
    "bad_shape": _WIRE.inserted(
        "an event of JSON with the wrong shape", "malformed", lambda *_: b'data: ["not", "an", "event"]\n\n'
    ),
    "unknown_event": _WIRE.inserted("an event of an unknown type", "unknown", lambda *_: frame(_PROGRESS)),
    "huge_event": _WIRE.huge("event_too_large"),
    "error_first": Fault("200 whose first events are `error` and `response.failed`", "error_event", plays=_error_first),
    "overloaded": Fault("the same, because the model is overloaded", "503_bare", plays=_overloaded),
    "content_filter": Fault("an incomplete response: content_filter", finish="content_filter", plays=_content_filter),
    "bad_utf8": Fault("text with a broken UTF-8 byte", "utf8", plays=_bad_utf8),
    "unended_item": Fault("a finish without the end of an item", plays=_unended_item),
    "lost_call": Fault("a finish without the end of a call", "lost_call", plays=_lost_call),
    "wrong_done": Fault("a whole text that differs from its pieces", plays=_wrong_done),
    "done_only": Fault("whole texts and arguments without their pieces", plays=_done_only),
    "last_only": Fault("the last event alone has the output", plays=_last_only),
    "double_finish": Fault("a second finish after the finish", "twice", plays=_double_finish),
    "late": Fault("text after the finish", "late", plays=_late),
    "usage_null": Fault("an answer with token counts of null", plays=_usage_null),
    "unknown_item": Fault("an item of a tool that the backend runs itself", "unknown", plays=_unknown_item),
}


def _played(wanted: Iterable[JsonObject]) -> Response:
    return Response(tuple(frame(event) for event in numbered(wanted)))
