"""Converts the events of a stream, or one whole response, into events.

Source: OpenAI, API reference, `POST /v1/responses` and its streaming events.
"""

from collections.abc import Callable, Mapping
from typing import Final

from adapters.call_ids import CallIds
from adapters.openai_responses.call_item import CallItem
from adapters.openai_responses.failure import invalid_call, reported_failure
from adapters.openai_responses.output_item import OutputItem, Pieces, Place, unknown_fields
from adapters.openai_responses.part_events import PIECES, WHOLES, PartEvent
from adapters.openai_responses.text_items import MessageItem, ReasoningItem
from adapters.openai_responses.usage import decode_usage
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected
from gateway.core.events import Event, Finish, Reason, ResponseStart
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Notice
from gateway.dialects.openai_responses.call_items import CALL_KINDS
from gateway.dialects.openai_responses.function_names import ToolNames
from gateway.response.passthrough import Passthrough

# They repeat what other events say, or say nothing.
_SILENT: Final = frozenset(
    {
        "keepalive",
        "response.queued",
        "response.content_part.added",
        "response.content_part.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
    }
)
_INCOMPLETE: Final[Mapping[str, Reason]] = {"max_output_tokens": "length", "content_filter": "content_filter"}
# Tuples: what a backend sends as its status may be unhashable.
_FAILED: Final = ("failed", "cancelled")
_COMPLETE: Final = ("completed", "incomplete", None)
# What a delta repeats of its item, what makes all deltas equally long, and what is empty unless it was requested.
_DELTA_FIELDS: Final = frozenset(
    {"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "delta", "obfuscation"}
)
# The fields that the gateway fills itself. Any other field of a response is the backend's own.
_RESPONSE_FIELDS: Final = frozenset(
    {"id", "object", "created_at", "completed_at", "status", "error", "incomplete_details", "model", "output"}
    | {"output_text", "usage", "background", "previous_response_id", "conversation", "store"}
)


class EventReader:
    """Reads one response. `started` is true once anything of a response has arrived, `finished` once it is complete.

    `seed` makes derived ids differ from those of earlier responses in a conversation, and `names` returns the names of
    the request's tools.
    """

    def __init__(self, seed: int, names: Callable[[], ToolNames], passthrough: Passthrough) -> None:
        self.started = False
        self.finished = False
        self._passthrough = passthrough
        self._names = names
        self._ids = CallIds(seed)
        # Each item by its position; None: an item of an unknown type.
        self._items: dict[int, OutputItem | None] = {}
        self._ended: set[int] = set()

    def event(self, event: Json) -> list[Event]:
        """Return the events of one event of a stream. Raises BackendError."""
        if not isinstance(event, dict):
            raise invalid_event("it is not an object")
        kind = event.get("type")
        if kind == "error" or (event.get("error") is not None and not isinstance(kind, str)):
            raise _failure(event)
        if not isinstance(kind, str):
            raise invalid_event("it has no type")
        events: list[Event] = []
        try:
            if (piece := PIECES.get(kind)) is not None:
                self._piece(piece, event, events)
            elif (whole := WHOLES.get(kind)) is not None:
                self._whole(whole, event, events)
            elif (handle := _HANDLERS.get(kind)) is not None:
                handle(self, event, events)
            elif kind not in _SILENT:
                self._begin({}, events)
                events += self._passthrough.event(event, f"an event of type {kind[:64]}")
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def response(self, response: Json) -> list[Event]:
        """Return the events of a whole response. Raises BackendError."""
        if not isinstance(response, dict):
            raise invalid_event("it is not an object")
        if response.get("error") is not None:
            raise _failure(response)
        if not isinstance(response.get("output"), list):
            message = "The backend's response has no output."
            raise BackendProtocolError(message, code="upstream_invalid_response")
        events: list[Event] = []
        try:
            self._end({"type": f"response.{response.get('status')}", "response": response}, events)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def open_part(self, output_index: int, place: Place) -> Pieces | None:
        """Return the part at this place, if it has begun and its item has not ended, for use by a fast path."""
        if output_index in self._ended:
            return None
        item = self._items.get(output_index)
        return None if item is None else item.pieces(place)

    def late(self, events: list[Event]) -> None:
        """Report data that follows the end of the stream."""
        events.append(_notice("ignored", "LATE_EVENT", "the backend sent more data after it had ended its stream"))

    def _begin(self, event: JsonObject, events: list[Event]) -> None:
        """Read an event with the response as it begins."""
        if not self.started:
            self.started = True
            response = event.get("response")
            fields = response if isinstance(response, dict) else {}
            events.append(ResponseStart(_text(fields.get("id")), _text(fields.get("model"))))
            self._own_fields(fields, events)

    def _added(self, event: JsonObject, events: list[Event]) -> None:
        index, item = _index(event, "output_index"), _item(event)
        if index in self._items:
            raise invalid_event("two items at one output_index")
        self._open(index, item, events)
        if self._items[index] is None:
            self._unknown_item(event, item, events)

    def _open(self, index: int, item: JsonObject, events: list[Event]) -> OutputItem | None:
        self._begin({}, events)
        kind = item["type"]
        made: OutputItem | None = None
        if kind == "message":
            made = message = MessageItem(self._passthrough)
            events += message.begin(item, behind=isinstance(self._items.get(index - 1), MessageItem))
        elif kind == "reasoning":
            made = ReasoningItem(item, self._passthrough)
        elif kind in CALL_KINDS:
            made = call = CallItem(index, item, self._names, self._ids, self._passthrough)
            events += call.begin(item)
        self._items[index] = made
        return made

    def _done(self, event: JsonObject, events: list[Event]) -> None:
        index, item = _index(event, "output_index"), _item(event)
        made = self._items[index] if index in self._items else self._open(index, item, events)
        if index in self._ended:
            raise invalid_event("an item that has ended before")
        self._ended.add(index)
        if made is None:
            self._unknown_item(event, item, events)
        else:
            events += made.end(item)

    def _piece(self, part: PartEvent, event: JsonObject, events: list[Event]) -> None:
        item, place = self._part_of(part, event)
        text = event.get(part.text)
        if not isinstance(text, str):
            raise invalid_event(f"{part.text} is not text")
        if unknown := unknown_fields(event, _DELTA_FIELDS):
            events += self._passthrough.fields("delta", unknown)
        if text:
            events += item.piece(place, text)

    def _whole(self, part: PartEvent, event: JsonObject, events: list[Event]) -> None:
        item, place = self._part_of(part, event)
        if isinstance(text := event.get(part.text), str):
            events += item.whole(place, text)

    def _part_of(self, part: PartEvent, event: JsonObject) -> tuple[OutputItem, Place]:
        index = _index(event, "output_index")
        item = self._items.get(index)
        if item is None or index in self._ended:
            raise invalid_event("a part of an item that is not open")
        return item, (part.part, 0 if part.position is None else _index(event, part.position))

    def _end(self, event: JsonObject, events: list[Event]) -> None:
        """Read an event with the response as it ends."""
        response = event.get("response")
        if not isinstance(response, dict):
            raise invalid_event("it has no response")
        if response.get("status") in _FAILED:
            raise _failure(response)
        self._begin(event, events)
        reason = self._reason(event, response, events)
        self._remaining_output(response, events)
        self._close_items(reason, events)
        self._own_fields(response, events)
        if isinstance(usage := response.get("usage"), dict):
            events.append(decode_usage(usage))
        events.append(Finish(reason, _text(response.get("status"))))
        self.finished = True

    def _own_fields(self, response: JsonObject, events: list[Event]) -> None:
        """Pass on what the backend says of its response. To a client of another dialect it repeats the request."""
        if self._passthrough.passes and (unknown := unknown_fields(response, _RESPONSE_FIELDS)):
            events += self._passthrough.fields("response", unknown)

    def _reason(self, event: JsonObject, response: JsonObject, events: list[Event]) -> Reason:
        """Return the reason that the event and the status in its response give: both must say that it is complete."""
        statuses = (str(event["type"]).removeprefix("response."), response.get("status"))
        if not all(status in _COMPLETE for status in statuses):
            message = "The backend ended its response without completing it."
            raise BackendProtocolError(message, code="upstream_invalid_response")
        if "incomplete" not in statuses:
            return "stop"
        details = response.get("incomplete_details")
        why = (_text(details.get("reason")) if isinstance(details, dict) else None) or ""
        if why not in _INCOMPLETE:
            detail = f"the reason {why[:40]!r} of an incomplete response is unknown; read as length"
            events.append(_notice("changed", "FINISH_REASON_UNKNOWN", detail))
        return _INCOMPLETE.get(why, "length")

    def _remaining_output(self, response: JsonObject, events: list[Event]) -> None:
        """Read the items behind those that came in events of their own: of a whole response all."""
        output = response.get("output")
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if index >= len(self._items):
                self._done({"type": "response.output_item.done", "output_index": index, "item": item}, events)

    def _close_items(self, reason: Reason, events: list[Event]) -> None:
        """Raises BackendProtocolError for an item without its end, unless the response is incomplete: then its last
        item may be as well."""
        open_items = [item for index, item in self._items.items() if index not in self._ended]
        if reason == "stop" and open_items:
            if any(isinstance(item, CallItem) for item in open_items):
                raise invalid_call("The backend ended its response inside a tool call.")
            raise invalid_event("the response ended inside an item")
        for item in open_items:
            events += [] if item is None else item.cut()

    def _unknown_item(self, event: JsonObject, item: JsonObject, events: list[Event]) -> None:
        events += self._passthrough.event(event, f"an output item of type {str(item['type'])[:64]}")

    def _annotation(self, event: JsonObject, events: list[Event]) -> None:
        index = _index(event, "output_index")
        item = self._items.get(index)
        if not isinstance(item, MessageItem) or index in self._ended:
            raise invalid_event("an annotation of a message that is not open")
        events += item.annotation(event)

    def _fail(self, event: JsonObject, events: list[Event]) -> None:
        response = event.get("response")
        raise _failure(response if isinstance(response, dict) else event)


_HANDLERS: Final[Mapping[str, Callable[[EventReader, JsonObject, list[Event]], None]]] = {
    "response.created": EventReader._begin,
    "response.in_progress": EventReader._begin,
    "response.output_item.added": EventReader._added,
    "response.output_item.done": EventReader._done,
    "response.output_text.annotation.added": EventReader._annotation,
    "response.completed": EventReader._end,
    "response.incomplete": EventReader._end,
    "response.failed": EventReader._fail,
    "response.cancelled": EventReader._fail,
}


def _failure(fields: JsonObject) -> BackendError:
    """Decode an error: an object in the field `error`, beside it, or a status that says nothing else."""
    error = fields.get("error")
    if error is not None:
        return reported_failure(error)
    if fields.get("type") == "error":
        return reported_failure({name: value for name, value in fields.items() if name != "type"})
    return BackendRejected("The backend ended the response early.")


def _notice(action: Action, rule: str, detail: str) -> Notice:
    return Notice("backend", action, rule, detail, level="warning")


def _item(event: JsonObject) -> JsonObject:
    item = event.get("item")
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise invalid_event("an item without a type")
    return item


def _index(event: JsonObject, field: str) -> int:
    index = event.get(field)
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise invalid_event(f"{field} is not a position")
    return index


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
