"""Converts the events of a stream, or one whole response, into events.

Source: OpenAI, API reference, `POST /v1/responses` and its streaming events.
"""

from collections.abc import Callable, Mapping
from typing import Final

from adapters.openai_responses.backend.call_item import ADDED, CALL_INPUT, DONE, CallItem
from adapters.openai_responses.backend.failure import invalid_call, reported_failure
from adapters.openai_responses.backend.output_item import OutputItem, Pieces, Place, unknown_fields
from adapters.openai_responses.backend.part_events import PIECES, WHOLES, PartEvent
from adapters.openai_responses.backend.text_items import Latest, MessageItem, ReasoningItem
from adapters.openai_responses.call_items import CALL_KINDS, is_hosted
from adapters.openai_responses.function_names import ToolNames
from adapters.openai_responses.table import INCOMPLETE
from adapters.openai_responses.usage import decode_usage
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, PassthroughFields, Reason, ResponseStart
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Notice, NoticeRule
from gateway.response.passthrough import Passthrough
from gateway.wires.call_ids import CallIds
from gateway.wires.event_stream import StreamEnd
from gateway.wires.json_body import text_in

# They repeat what other events say, or say nothing.
_SILENT: Final = frozenset(
    {
        "keepalive",
        "response.queued",
    }
)
# Tuples: what a backend sends as its status may be unhashable.
_FAILED: Final = ("failed", "cancelled")
_COMPLETE: Final = ("completed", "incomplete", None)
# What a delta repeats of its item, what makes all deltas equally long, and what is empty unless it was requested.
_DELTA_FIELDS: Final = frozenset(
    {"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "delta", "obfuscation"}
)
# The fields that the gateway fills itself. Any other field of a response is the backend's own.
_FRAME_FIELDS: Final = frozenset({"type", "sequence_number", "response"})
_FIELDS_OF_END: Final = frozenset({"incomplete_details", "usage"})
_RESPONSE_FIELDS: Final = frozenset(
    {"id", "object", "created_at", "completed_at", "status", "error", "incomplete_details", "model", "output"}
    | {"output_text", "usage", "background", "previous_response_id", "conversation", "store"}
)


class EventReader:
    """Reads one response. `started` is true once anything of a response has arrived, `finished` and `done` once it is
    complete.

    `seed` makes derived ids differ from those of earlier responses in a conversation, and `names` returns the names of
    the request's tools.
    """

    def __init__(self, seed: int, names: Callable[[], ToolNames], passthrough: Passthrough) -> None:
        self.started = False
        self.finished = False
        self.done = False
        self._passthrough = passthrough
        self._names = names
        self._ids = CallIds(seed)
        # Each item by its position; None: an item of an unknown type, as it began in `_begun`.
        self._items: dict[int, OutputItem | None] = {}
        self._begun: dict[int, JsonObject] = {}
        self._latest = Latest()
        # The positions of calls of which pieces came before their names.
        self._nameless: set[int] = set()
        self._mended = False
        self._ended: set[int] = set()

    def event(self, event: Json) -> list[Event]:
        """Returns the events of one event of a stream. Raises BackendError."""
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
        """Returns the events of a whole response. Raises BackendError."""
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
        """Returns the part at this place, if it has begun and its item has not ended, for use by a fast path."""
        if output_index in self._ended:
            return None
        item = self._items.get(output_index)
        return None if item is None else item.pieces(place)

    def end(self, where: StreamEnd) -> list[Event]:
        """Raises BackendTruncated: the event with the finished response alone completes it. `upstream_invalid_response`
        when no part of one arrived."""
        if not self.started and where in ("mark", "bytes"):
            raise BackendTruncated("The backend's stream contains no response.", code="upstream_invalid_response")
        raise BackendTruncated("The backend's stream ended before the response was complete.")

    def late(self) -> list[Event]:
        """Returns the report of data behind the end of the stream."""
        return [_notice("ignored", "LATE_EVENT", "the backend sent more data after it had ended its stream")]

    def _begin(self, event: JsonObject, events: list[Event]) -> None:
        """Reads an event with the response as it begins."""
        if not self.started:
            self.started = True
            response = event.get("response")
            fields = response if isinstance(response, dict) else {}
            events.append(ResponseStart(text_in(fields.get("id")), text_in(fields.get("model"))))
            self._own_fields(fields, events)
        self._frame(event, events)

    def _added(self, event: JsonObject, events: list[Event]) -> None:
        index, item = _index(event, "output_index"), _item(event)
        if index in self._items:
            raise invalid_event("two items at one output_index")
        self._open(index, event, item, events)
        if self._items[index] is None:
            self._begun[index] = item
            self._unknown_item(event, item, events)

    def _open(self, index: int, event: JsonObject, item: JsonObject, events: list[Event]) -> OutputItem | None:
        self._begin(EMPTY, events)
        self._latest.began(index)
        kind = item["type"]
        made: OutputItem | None = None
        if kind == "message":
            made = message = MessageItem(index, self._passthrough, self._latest)
            events += message.begin(event, item)
        elif kind == "reasoning":
            made = reasoning = ReasoningItem(index, self._passthrough, self._latest)
            events += reasoning.begin(event)
        elif kind in CALL_KINDS and not self._is_hosted(item):
            made = call = CallItem(index, item, self._names, self._ids, self._passthrough)
            events += call.begin(event, item)
        self._items[index] = made
        return made

    def _is_hosted(self, item: JsonObject) -> bool:
        """Returns whether the backend runs a call itself."""
        return is_hosted(item, self._names)

    def _done(self, event: JsonObject, events: list[Event]) -> None:
        index, item = _index(event, "output_index"), _item(event)
        if index in self._items:
            made = self._items[index]
        else:
            made = self._open(index, {"type": ADDED, "output_index": index, "item": _as_it_began(item)}, item, events)
        if index in self._ended:
            raise invalid_event("an item that has ended before")
        self._ended.add(index)
        if made is None:
            self._unknown_item(event, item, events)
        else:
            events += made.end(event, item)

    def _piece(self, part: PartEvent, event: JsonObject, events: list[Event]) -> None:
        text = event.get(part.text)
        if not isinstance(text, str):
            raise invalid_event(f"{part.text} is not text")
        if (found := self._part_of(part, event, events)) is None:
            return
        item, place = found
        made = [*item.piece(place, text)] if text else []
        if unknown := self._unknown(event):
            made[-1:-1] = self._passthrough.fields("delta", unknown)
        events += made

    def _unknown(self, delta: JsonObject) -> JsonObject:
        """Returns the fields of a piece beside its text: those of nothing as well to a client of the same API, except
        empty log probabilities, which every delta of it has."""
        if not self._passthrough.passes:
            return unknown_fields(delta, _DELTA_FIELDS)
        known = _DELTA_FIELDS if delta.get("logprobs") else _DELTA_FIELDS | {"logprobs"}
        return {name: value for name, value in delta.items() if name not in known}

    def _whole(self, part: PartEvent, event: JsonObject, events: list[Event]) -> None:
        if (found := self._part_of(part, event, events)) is None:
            return
        item, place = found
        if isinstance(text := event.get(part.text), str):
            events += item.whole(place, text)
        if isinstance(item, CallItem):
            item.ended_input(event)
        else:
            self._written(event, events)

    def _part_added(self, event: JsonObject, events: list[Event]) -> None:
        item = self._open_item(event)
        if isinstance(item, MessageItem | ReasoningItem):
            events += item.began_part(event)

    def _part_done(self, event: JsonObject, events: list[Event]) -> None:
        if isinstance(self._open_item(event), MessageItem | ReasoningItem):
            self._written(event, events)

    def _open_item(self, event: JsonObject) -> OutputItem | None:
        """Returns the item that an event without content of its own is about, if it is open."""
        index = event.get("output_index")
        return self._items.get(index) if type(index) is int and index not in self._ended else None

    def _written(self, event: JsonObject, events: list[Event]) -> None:
        """Passes on an event as the backend wrote it, to a client of the same API."""
        if self._passthrough.passes:
            events.append(PassthroughFields("event", event, frames=True))

    def _part_of(self, part: PartEvent, event: JsonObject, events: list[Event]) -> tuple[OutputItem, Place] | None:
        """Returns the item and the place of a part; None for one of an item of the backend's own, and for one of a call
        whose name has not come: the last event says its name and its whole input, or it is an error."""
        index = _index(event, "output_index")
        if index not in self._items and part.part == CALL_INPUT:
            self._begin(EMPTY, events)
            self._nameless.add(index)
            return None
        item = self._items[index] if index in self._items else self._implied(part, index, event, events)
        if item is None:
            events += self._passthrough.event(event, "a part of an item of the backend")
            return None
        if index in self._ended:
            raise invalid_event("a part of an item that is not open")
        if isinstance(item, CallItem) != (part.part == CALL_INPUT):
            raise invalid_event("a part of an item of another type")
        return item, (part.part, 0 if part.position is None else _index(event, part.position))

    def _implied(self, part: PartEvent, index: int, event: JsonObject, events: list[Event]) -> OutputItem | None:
        """Opens the item that must be around a part."""
        if part.part in ("output_text", "refusal"):
            item: dict[str, Json] = {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
        else:
            item = {"type": "reasoning", "summary": []}
        if isinstance(identity := event.get("item_id"), str):
            item["id"] = identity
        self._mend(events)
        return self._open(index, {"type": ADDED, "output_index": index, "item": item}, item, events)

    def _mend(self, events: list[Event]) -> None:
        """Reports once that an item lacks its beginning or its end."""
        if not self._mended:
            self._mended = True
            detail = "the beginning or the end of an item was missing in the stream; nothing of it is lost"
            events.append(_notice("added", "STREAM_MENDED", detail))

    def _end(self, event: JsonObject, events: list[Event]) -> None:
        """Reads an event with the response as it ends."""
        response = event.get("response")
        if not isinstance(response, dict):
            raise invalid_event("it has no response")
        if response.get("status") in _FAILED:
            raise _failure(response)
        self._begin(event, events)
        reason = self._reason(event, response, events)
        self._remaining_output(response, events)
        self._close_items(reason, response, events)
        self._own_fields(response, events, ended=True)
        self._frame(event, events)
        if isinstance(usage := response.get("usage"), dict):
            events.append(decode_usage(usage))
        events.append(Finish(reason, text_in(response.get("status"))))
        self.finished = self.done = True

    def _own_fields(self, response: JsonObject, events: list[Event], *, ended: bool = False) -> None:
        """Passes on what the backend says of its response. To a client of another dialect it repeats the request."""
        if not self._passthrough.passes:
            return
        known = _RESPONSE_FIELDS - _FIELDS_OF_END if ended else _RESPONSE_FIELDS
        if own := {name: value for name, value in response.items() if name not in known}:
            events.append(PassthroughFields("response", own))

    def _frame(self, event: JsonObject, events: list[Event]) -> None:
        """Passes on what the event of a whole response has beside it."""
        if not event.keys() <= _FRAME_FIELDS:
            own = {name: value for name, value in event.items() if name == "type" or name not in _FRAME_FIELDS}
            self._written(own, events)

    def _reason(self, event: JsonObject, response: JsonObject, events: list[Event]) -> Reason:
        """Returns the reason that the event and the status in its response give: both must say that it is complete."""
        statuses = (str(event["type"]).removeprefix("response."), response.get("status"))
        if not all(status in _COMPLETE for status in statuses):
            message = "The backend ended its response without completing it."
            raise BackendProtocolError(message, code="upstream_invalid_response")
        if "incomplete" not in statuses:
            return "stop"
        details = response.get("incomplete_details")
        why = (text_in(details.get("reason")) if isinstance(details, dict) else None) or ""
        if why not in INCOMPLETE.values:
            detail = f"the reason {why[:40]!r} of an incomplete response is unknown; read as length"
            events.append(_notice("changed", "FINISH_REASON_UNKNOWN", detail))
        return INCOMPLETE.values.get(why, "length")

    def _remaining_output(self, response: JsonObject, events: list[Event]) -> None:
        """Reads the items behind those that came in events of their own: of a whole response all."""
        output = response.get("output")
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if index in self._nameless - self._items.keys():
                self._mend(events)
            elif index < len(self._items):
                continue
            if index not in self._items:
                self._done({"type": "response.output_item.done", "output_index": index, "item": item}, events)

    def _close_items(self, reason: Reason, response: JsonObject, events: list[Event]) -> None:
        """Ends the items whose ends did not come. Raises BackendProtocolError for a call that may lack something,
        unless the response is incomplete: then its last item may be as well."""
        if not self._nameless <= self._items.keys():
            raise invalid_call("The backend sent the arguments of a tool call without the name of a function.")
        for index, item in self._items.items():
            if index in self._ended:
                continue
            if (whole := self._whole_item(index, response)) is not None:
                self._mend(events)
                self._done({"type": DONE, "output_index": index, "item": whole}, events)
            elif reason != "stop":
                events += [] if item is None else item.cut()
            else:
                self._mend(events)
                events += [] if item is None else item.close()

    def _whole_item(self, index: int, response: JsonObject) -> dict[str, Json] | None:
        """Returns an item as the last event has it, by its place and its type; of an item of an unknown type, which has
        no parts, at least as it began."""
        begun, output = self._begun.get(index), response.get("output")
        listed = output[index] if isinstance(output, list) and index < len(output) else None
        if isinstance(listed, dict) and self._is_item(index, listed):
            return listed
        return None if begun is None else dict(begun)

    def _is_item(self, index: int, listed: JsonObject) -> bool:
        kind, item = listed.get("type"), self._items[index]
        if item is None:
            begun = self._begun[index]
            return (kind, listed.get("id")) == (begun.get("type"), begun.get("id"))
        return kind == item.type

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
    "response.content_part.added": EventReader._part_added,
    "response.content_part.done": EventReader._part_done,
    "response.reasoning_summary_part.added": EventReader._part_added,
    "response.reasoning_summary_part.done": EventReader._part_done,
    "response.output_text.annotation.added": EventReader._annotation,
    "response.completed": EventReader._end,
    "response.incomplete": EventReader._end,
    "response.failed": EventReader._fail,
    "response.cancelled": EventReader._fail,
}


def _failure(fields: JsonObject) -> BackendError:
    """Decodes an error: an object in the field `error`, beside it, or a status that says nothing else."""
    error = fields.get("error")
    if error is not None:
        return reported_failure(error)
    if fields.get("type") == "error":
        return reported_failure({name: value for name, value in fields.items() if name != "type"})
    return BackendRejected("The backend ended the response early.")


def _notice(action: Action, rule: NoticeRule, detail: str) -> Notice:
    return Notice("backend", action, rule, detail, level="warning")


def _item(event: JsonObject) -> JsonObject:
    item = event.get("item")
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise invalid_event("an item without a type")
    return item


def _as_it_began(item: JsonObject) -> dict[str, Json]:
    """Returns an item without the parts that follow, for the event that the backend left out."""
    begun: dict[str, Json] = {"status": "in_progress", "summary": [], "content": []}
    return {name: begun.get(name, value) if value else value for name, value in item.items()}


def _index(event: JsonObject, field: str) -> int:
    index = event.get(field)
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise invalid_event(f"{field} is not a position")
    return index
