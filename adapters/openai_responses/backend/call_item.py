"""Converts what the backend says of a call that the client runs into events."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from adapters.openai_responses import DIALECT
from adapters.openai_responses.backend.failure import invalid_call
from adapters.openai_responses.backend.output_item import Pieces, Place, fields_of_end, unknown_fields
from adapters.openai_responses.call_items import CALL_KINDS, FORMS, called_tool
from adapters.openai_responses.function_names import ToolNames
from gateway.core.call_arguments import INPUT, is_json
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Event, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.malformed_event import invalid_event
from gateway.framing.json_text import NotJson, decode_json
from gateway.response.passthrough import Passthrough
from gateway.wires.call_ids import CallIds

# The type of the only part of a call.
CALL_INPUT: Final = "input"
ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"
# The fields that the events of a call and the form of its tool contain.
_KNOWN: Final = frozenset({"type", "id", "status", "call_id", "name", "namespace", "execution"})
_encode: Final = msgspec.json.Encoder().encode


class CallItem:
    """A call. It starts as soon as its name is known.

    A call of another kind than a function becomes one of a function, as the dialect names it: the input of a custom
    tool stands in an object then. `names` returns the names of the request's tools.
    """

    def __init__(
        self,
        index: int,
        item: JsonObject,
        names: Callable[[], ToolNames],
        ids: CallIds,
        passthrough: Passthrough,
    ) -> None:
        self.type = str(item["type"])
        self._index = index
        self._kind = CALL_KINDS[self.type]
        self._form = FORMS[self._kind]
        self._names = names
        self._ids = ids
        self._passthrough = passthrough
        self._begun: JsonObject = EMPTY
        self._input = Pieces(self._delta)
        self._started = False
        # The events that end it, for a client of the same API, by their types.
        self._ends: dict[str, Json] = {}

    def begin(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        """Yields the events of the item as it begins, or of the whole item if it began without a name."""
        name = item.get("name") if self._kind in ("function", "custom") else self._kind
        if self._started or not isinstance(name, str) or not name:
            return
        self._started = True
        call_id, told = self._ids.take(item.get("call_id"), self._index)
        yield from told
        extra: JsonObject = {DIALECT: {**event}}
        if not self._passthrough.passes:
            self._begun = self._unknown(item)
            extra, notices = self._passthrough.extra(self._begun)
            yield from notices
        yield ToolCallStart(self._index, call_id, self._name(name, item), extra=extra)
        if self._kind == "custom":
            yield ToolCallDelta(self._index, f'{{"{INPUT}":"')

    def pieces(self, place: Place) -> Pieces | None:
        return self._input if self._started and place[0] == CALL_INPUT else None

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        if not self._started:
            raise invalid_event("the input of a call without a name")
        yield self._input.add(text)

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        if not self._started:
            # The item that ends the call has its name and its whole input.
            return
        rest = self._input.rest_of(text)
        if rest:
            yield self._input.add(rest)
        elif rest is None and (self._kind == "custom" or not _same_json(text, self._input.joined())):
            raise invalid_call("The backend sent a tool call whose whole arguments differ from their pieces.")

    def ended_input(self, event: JsonObject) -> None:
        """Keeps the event with the whole input for a client of the same API."""
        self._ends[str(event["type"])] = dict(event)

    def end(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        self._ends[str(event["type"])] = dict(event)
        yield from self.begin({**event, "type": ADDED}, item)
        if not self._started:
            raise invalid_call("The backend sent a tool call without the name of a function.")
        written = item.get(self._form.field)
        if written is not None:
            yield from self.whole((CALL_INPUT, 0), written if isinstance(written, str) else _encode(written).decode())
        incomplete = item.get("status") == "incomplete"
        yield from self._end(fields_of_end(self._begun, self._unknown(item)), incomplete=incomplete)

    def close(self) -> Iterator[Event]:
        """Raises BackendProtocolError unless the whole input came, or pieces that are a whole JSON value."""
        is_whole = bool(self._ends) or (self._kind == "function" and is_json(self._input.joined()))
        if not self._started or not is_whole:
            raise invalid_call("The backend ended its response inside a tool call.")
        yield from self._end(EMPTY, incomplete=False)

    def cut(self) -> Iterator[Event]:
        if self._started:
            yield from self._end(EMPTY, incomplete=True)

    def _end(self, fields: JsonObject, *, incomplete: bool) -> Iterator[Event]:
        """Yields the end. To a client of another dialect, the finish reason says that a call is incomplete."""
        if not incomplete and self._kind == "custom":
            yield ToolCallDelta(self._index, '"}')
        elif not incomplete and not self._input:
            yield ToolCallDelta(self._index, "{}")
        if self._passthrough.passes:
            if incomplete and DONE not in self._ends:
                self._ends[DONE] = {"item": {"status": "incomplete"}}
            yield ToolCallEnd(self._index, {DIALECT: self._ends})
            return
        extra, notices = self._passthrough.extra(fields)
        yield from notices
        yield ToolCallEnd(self._index, extra)

    def _unknown(self, item: JsonObject) -> JsonObject:
        return unknown_fields(item, _KNOWN | {self._form.field})

    def _name(self, name: str, item: JsonObject) -> str:
        """Returns the name of the function that the call's tool is for any other API."""
        tool = called_tool(item)
        if tool is None or (tool.kind == "function" and tool.namespace is None):
            return name
        if self._passthrough.passes and self._kind == "function" and not self._names().knows(tool):
            # Its namespace stays beside it.
            return name
        return self._names().name(tool)

    def _delta(self, text: str) -> Event:
        if self._kind == "custom":
            text = _encode(text)[1:-1].decode()
        return ToolCallDelta(self._index, text)


def _same_json(one: str, other: str) -> bool:
    """Whether two texts are the same JSON value, perhaps with other spaces."""
    try:
        return decode_json(one.encode()) == decode_json(other.encode())
    except NotJson:
        return False
