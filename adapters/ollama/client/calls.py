"""Reads the `tool_calls` of an assistant message as ToolCall blocks, and writes those of an answer."""

from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.core.call_arguments import as_object
from gateway.core.conversation import EMPTY, Json, JsonObject, ToolCall
from gateway.core.events import ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

UNNAMED: Final = "unknown"
_CALL: Final = frozenset({"id", "type", "function"})
_FUNCTION: Final = frozenset({"index", "name", "arguments"})


def read_calls(value: Json, index: int, faults: Faults) -> tuple[ToolCall, ...]:
    """Returns the calls in `tool_calls`, which may be absent. Faults: CALLS_TYPE and those of each call.

    An entry that is no object names no function and is left out. An id may be absent: it is derived later.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        faults.add("CALLS_TYPE", index, ".tool_calls", f"tool_calls is {kind_of(value)}, not an array")
        value = [value] if isinstance(value, dict) else []
    calls: list[ToolCall] = []
    odd: list[Json] = []
    places: list[int] = []
    for position, entry in enumerate(value):
        if isinstance(entry, dict):
            calls.append(_read_call(entry, index, position, faults))
        else:
            odd.append(entry)
            places.append(position)
    if odd:
        faults.add_each(
            "CALL_TYPE",
            len(odd),
            lambda n: (index, f".tool_calls[{places[n]}]", f"a tool call is {kind_of(odd[n])}, not an object"),
            "tool calls are not objects",
        )
    return tuple(calls)


def call_object(id: str, name: str, arguments: str, position: int) -> dict[str, Json]:
    """Returns a call as Ollama writes it: its arguments are an object, and it has a place among the calls."""
    return {"id": id, "function": {"index": position, "name": name, "arguments": as_object(arguments)}}


class AnswerCalls:
    """The calls of one answer, in the order in which they are complete: each is written whole."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[ToolCallStart, list[str]]] = {}
        self._complete = 0

    def start(self, event: ToolCallStart) -> None:
        """Opens a call."""
        self._open[event.index] = (event, [])

    def add(self, event: ToolCallDelta) -> None:
        """Adds a piece of its arguments."""
        self._open[event.index][1].append(event.arguments)

    def end(self, event: ToolCallEnd) -> dict[str, Json]:
        """Returns the complete call."""
        start, pieces = self._open.pop(event.index)
        self._complete += 1
        return call_object(start.id, start.name, "".join(pieces), self._complete - 1)


def _read_call(entry: dict[str, Json], index: int, position: int, faults: Faults) -> ToolCall:
    place = f".tool_calls[{position}]"
    written = entry.get("id")
    identity = written if isinstance(written, str) and written.strip() else ""
    body = entry.get("function")
    if isinstance(body, str) and body.strip():
        faults.add("CALL_TYPE", index, f"{place}.function", "a function is text, not an object; it is read as its name")
        body = {"name": body}
    elif not isinstance(body, dict):
        faults.add("CALL_TYPE", index, f"{place}.function", "a tool call has no function")
        body = {}
    name = body.get("name")
    if not (isinstance(name, str) and name.strip()):
        faults.add("CALL_NAME", index, f"{place}.function.name", "a tool call has no function name", identity or None)
        name = UNNAMED
    arguments = _arguments(body.get("arguments"), index, f"{place}.function.arguments", identity, faults)
    return ToolCall(identity, name, arguments, _other_fields(entry, body), not identity, position)


def _arguments(value: Json, index: int, place: str, identity: str, faults: Faults) -> str:
    """Returns an object as JSON text, text unchanged, and nothing as `{}`. Fault: CALL_ARGS_TYPE."""
    if isinstance(value, str):
        return value
    if value is not None and not isinstance(value, dict):
        detail = f"arguments is {kind_of(value)}, not an object"
        faults.add("CALL_ARGS_TYPE", index, place, detail, identity or None)
    return "{}" if value is None else msgspec.json.encode(value).decode()


def _other_fields(entry: JsonObject, body: JsonObject) -> JsonObject:
    inner = _without(body.items(), _FUNCTION)
    rest = _without(entry.items(), _CALL)
    return {**rest, "function": inner} if inner else rest or EMPTY


def _without(fields: Iterable[tuple[str, Json]], read: frozenset[str]) -> dict[str, Json]:
    return {name: value for name, value in fields if name not in read and value is not None}
