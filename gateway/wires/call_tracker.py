"""Assembles tool call events from deltas, whatever index and id conventions the backend follows.

Providers number calls from zero, from one, all with zero or not at all. They send the id once, with every delta, late
or never. The tracker therefore trusts neither field alone: a delta belongs to the call that its id, or else its index,
has identified so far. A name begins another call when the identified call already has a different name, or when it
stands in front of new arguments and the existing arguments are complete.

A call starts when its name and id are known. If the id does not arrive with the delta after the name, it is derived
(`gateway.wires.call_ids`).
All calls end with the response, because arguments that parse may still be the beginning of longer ones.
"""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Notice, NoticeRule
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.call_ids import CallIds

Key = int | str
Kind = Literal["function", "custom"]

# Limits how often the arguments of one call are parsed to check whether they are complete. A backend that needs more
# checks than this repeats the name with every piece.
_TRIES: Final = 64
# Limits how many characters these checks parse, except for the last check.
_READ_AGAIN: Final = 1 << 20
_READ: Final = frozenset({"index", "id", "type", "function", "custom"})


class _Piece(msgspec.Struct, frozen=True):
    """One delta of one call."""

    key: Key | None
    id: str | None
    name: str
    arguments: str
    extra: JsonObject = EMPTY


class _Call:
    """The state of a call, as far as the deltas define it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.sent_id: str | None = None  # as the backend wrote it; other calls may have the same one
        self.name = ""
        self.extra: dict[str, Json] = {}
        self.pieces: list[str] = []
        self.sent = 0
        self.started = False
        self.named_before = False
        self._tries = _TRIES
        self._room = _READ_AGAIN
        self._judged = 0
        self._complete = False

    def more(self, arguments: str) -> ToolCallDelta:
        """Creates a delta with more arguments."""
        self.pieces.append(arguments)
        self.sent += 1
        return ToolCallDelta(self.index, arguments)

    @property
    def is_stub(self) -> bool:
        """Whether only the position of the call is known."""
        return not (self.name or self.sent_id or self.pieces or self.extra)

    def complete(self) -> bool:
        """Whether the arguments are one whole object."""
        if self._judged != len(self.pieces):
            self._judged = len(self.pieces)
            self._complete = self._is_object()
        return self._complete

    def _is_object(self) -> bool:
        if not self._tries or self._room < 0 or not self.pieces[-1].rstrip().endswith("}"):
            return False
        arguments = "".join(self.pieces).encode()
        self._tries -= 1
        self._room -= len(arguments)
        try:
            return isinstance(decode_json(arguments), dict)
        except NotJson:
            return False


class CallTracker:
    """Tracks the calls of one response. `seed` makes derived ids differ from those of earlier responses in a
    conversation. `optional_ids`: the wire's calls need no id."""

    def __init__(self, seed: int, *, optional_ids: bool = False) -> None:
        self._ids = CallIds(seed, optional=optional_ids)
        self._calls: list[_Call] = []
        self._by_key: dict[Key, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def feed(self, entries: Json, *, whole: bool = False) -> list[Event]:
        """Returns the events of a `tool_calls` array. With `whole`, its entries are complete calls, numbered by
        position. Raises BackendProtocolError."""
        if not isinstance(entries, list):
            raise invalid_event("tool_calls is not an array")
        events: list[Event] = []
        for position, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise invalid_event("a tool call is not an object")
            piece = _read(entry)
            if whole:
                piece = msgspec.structs.replace(piece, key=position)
            events += self._feed(piece)
        return events

    def more(self, index: int) -> Callable[[str], ToolCallDelta]:
        """Returns a function that makes deltas with more arguments for a started call, for use by a fast path."""
        return self._calls[index].more

    def close(self, spoken: bool) -> list[Event]:
        """Complete the response: start the calls that are still held and end all calls. Raises BackendProtocolError for
        a call without a name, because no call can be made of it. The only exception is an empty stub in a response that
        also has text (`spoken`) or other calls: the stub is dropped."""
        events: list[Event] = []
        stubs_alone = not spoken and not any([call.name for call in self._calls])
        for call in self._calls:
            if not call.name:
                if stubs_alone or not call.is_stub:
                    message = "The backend sent a tool call without the name of a function."
                    raise BackendProtocolError(message, code="upstream_invalid_tool_call")
                events.append(_notice("dropped", "CALL_EMPTY", "an empty tool call"))
                continue
            events += self._flush(call)
            if not call.pieces:
                events.append(ToolCallDelta(call.index, "{}"))
            events.append(ToolCallEnd(call.index))
        return events

    def _feed(self, piece: _Piece) -> Iterator[Event]:
        call = self._find(piece)
        if call is None:
            call = _Call(len(self._calls))
            self._calls.append(call)
        if piece.id is not None and call.id is None and not call.started:
            call.sent_id = piece.id
            call.id, told = self._ids.take(piece.id, call.index)
            yield from told
        if piece.key is not None:
            self._by_key[piece.key] = call
        if piece.id is not None:
            self._by_id.setdefault(piece.id, call)
        call.name = call.name or piece.name
        if piece.extra and call.started:
            yield _notice("dropped", "CALL_FIELD_LATE", f"{', '.join(piece.extra)} of a call that had already begun")
        elif piece.extra:
            call.extra.update(piece.extra)
        if piece.arguments:
            call.pieces.append(piece.arguments)
        if call.name and (call.id or call.started or call.named_before):
            yield from self._flush(call)
        call.named_before = bool(call.name)

    def _find(self, piece: _Piece) -> _Call | None:
        """Returns the call that this delta continues, or None when the delta begins a call."""
        placed = self._placed(piece.key)
        if piece.id is None:
            return placed if placed is not None and not _begins(piece, placed) else None
        known = placed if placed is not None and placed.sent_id == piece.id else self._by_id.get(piece.id)
        if known is None:
            # A late id belongs to the call at its index, unless that call has an id of its own.
            waits = placed is not None and placed.id is None and not (piece.name and placed.name)
            return placed if waits else None
        elsewhere = piece.key is not None and bool(piece.name) and placed is not known
        return None if elsewhere or _begins(piece, known) else known

    def _placed(self, key: Key | None) -> _Call | None:
        if key is not None:
            return self._by_key.get(key)
        return self._calls[-1] if self._calls else None

    def _flush(self, call: _Call) -> Iterator[Event]:
        if not call.started:
            call.started = True
            if call.id is None:
                call.id, told = self._ids.take(None, call.index)
                yield from told
            yield ToolCallStart(call.index, call.id, call.name, extra=call.extra or EMPTY)
        text = "".join(call.pieces[call.sent :])
        call.sent = len(call.pieces)
        if text:
            yield ToolCallDelta(call.index, text)


def _begins(piece: _Piece, call: _Call) -> bool:
    """Whether a delta with a name begins another call than the one that its id or index identifies."""
    if not piece.name or not call.name:
        return False
    if piece.name != call.name:
        return True
    return piece.arguments.lstrip()[:1] == "{" and call.complete()


def _read(entry: dict[str, Json]) -> _Piece:
    # Snowflake writes both bodies, of which the other one is empty.
    custom = entry.get("type") == "custom" or (entry.get("custom") and entry.get("function") is None)
    kind: Kind = "custom" if custom else "function"
    body = entry.get(kind)
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise invalid_event(f"{kind} of a tool call is not an object")
    key, identity, name = entry.get("index"), entry.get("id"), body.get("name")
    return _Piece(
        key if isinstance(key, int | str) else None,
        identity if isinstance(identity, str) and identity else None,
        name if isinstance(name, str) else "",
        _text(body.get("input" if kind == "custom" else "arguments")),
        _rest(entry, kind, body),
    )


def _text(arguments: Json) -> str:
    """Returns the arguments as text. If a backend sends the value itself, return its JSON text."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _rest(entry: dict[str, Json], kind: Kind, body: JsonObject) -> JsonObject:
    rest = {key: value for key, value in entry.items() if key not in _READ and value is not None}
    inner = {key: value for key, value in body.items() if key not in ("name", "arguments", "input")}
    if inner:
        rest[kind] = inner
    if kind == "custom" and "name" in body:
        rest["type"] = kind
    return rest or EMPTY


def _notice(action: Action, rule: NoticeRule, detail: str) -> Notice:
    return Notice("backend", action, rule, detail, level="warning")
