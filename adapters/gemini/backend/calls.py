"""Converts the function calls of a response into events: whole ones, and those whose arguments come in pieces."""

from typing import NamedTuple

import msgspec

from adapters.gemini import DIALECT
from adapters.gemini.own_chunk import own_call
from adapters.gemini.partial_arguments import BrokenPiece, PartialArguments, is_piece
from adapters.gemini.parts import state_of
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, Finish, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.malformed_event import invalid_event
from gateway.wires.call_ids import CallIds


class _GrowingCall(NamedTuple):
    """A call that has begun, and its arguments so far."""

    start: ToolCallStart
    arguments: PartialArguments


class CallReader:
    """Reads the calls of one response; `count` of them have begun as events, and `pieces` are those of calls in pieces.

    `seed` as in CallIds. `passes`: the client speaks this dialect, so that a call keeps the fields that the backend
    wrote, and stays without an id.
    """

    def __init__(self, seed: int, *, passes: bool) -> None:
        self.count = 0
        self.pieces = 0
        self._ids = CallIds(seed, optional=True)
        self._passes = passes
        self._growing: _GrowingCall | None = None

    def read(self, part: dict[str, Json], events: list[Event]) -> None:
        """Adds the events of a part with a call. Raises InvalidToolCall, and BackendProtocolError for a value of
        another type."""
        call = part["functionCall"]
        if not isinstance(call, dict):
            raise invalid_event("functionCall is not an object")
        if self._growing is not None or is_piece(call):
            self._piece(call, part, events)
        else:
            self._whole(call, part, events)

    def passed(self, piece: JsonObject) -> str:
        """Counts a piece that the client gets as it is. Return the name of the function whose call it begins; a further
        piece has none, or the same again."""
        self.pieces += 1
        name = piece.get("name")
        return name if isinstance(name, str) else ""

    def close(self, finish: Finish, events: list[Event]) -> None:
        """Ends the call that has not ended, of a response that the token limit has cut. Raises InvalidToolCall for any
        other response."""
        if self._growing is None:
            return
        if finish.reason != "length":
            raise InvalidToolCall("The backend ended its response inside a tool call.")
        self._end_growing(self._growing, EMPTY, events)

    def _whole(self, call: dict[str, Json], part: JsonObject, events: list[Event]) -> None:
        arguments = call.get("args")
        if arguments is not None and not isinstance(arguments, dict):
            raise invalid_event("args is not an object")
        extra = {**state_of(part), DIALECT: own_call(part)} if self._passes else state_of(part)
        start = self._start(call, extra, events)
        text = msgspec.json.encode(arguments or {}).decode()
        events += (ToolCallDelta(start.index, text), ToolCallEnd(start.index))

    def _start(self, call: JsonObject, extra: JsonObject, events: list[Event]) -> ToolCallStart:
        name = call.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidToolCall("The backend sent a call without the name of a function.")
        index = self.count
        self.count += 1
        call_id, told = self._ids.take(call.get("id"), index)
        if call.get("id") or not self._passes:
            events += told
        start = ToolCallStart(index, call_id, name, extra=extra)
        events.append(start)
        return start

    def _piece(self, call: JsonObject, part: JsonObject, events: list[Event]) -> None:
        """Adds a piece to the call that has begun. Each further piece has no name, or the same."""
        growing, extra = self._growing, state_of(part)
        self.pieces += 1
        if growing is None:
            start = self._start(call, extra, events)
            growing, extra = _GrowingCall(start, PartialArguments()), EMPTY
            self._growing = growing
        elif call.get("name") not in (None, "", growing.start.name):
            raise InvalidToolCall("The backend began a tool call inside another one.")
        try:
            growing.arguments.add(call)
        except BrokenPiece as broken:
            raise InvalidToolCall(f"The backend streamed a tool call that cannot be read: {broken}.") from broken
        if not growing.arguments.open:
            self._end_growing(growing, extra, events)

    def _end_growing(self, growing: _GrowingCall, extra: JsonObject, events: list[Event]) -> None:
        self._growing = None
        index, text = growing.start.index, msgspec.json.encode(growing.arguments.arguments).decode()
        events += (ToolCallDelta(index, text), ToolCallEnd(index, extra))
