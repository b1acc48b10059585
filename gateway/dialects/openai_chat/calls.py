"""The `tool_calls` of an assistant message in, ToolCall blocks out."""

from typing import Final

from gateway.dialects.openai_chat.content import json_text, kind_of
from gateway.dialects.openai_chat.faults import Faults
from gateway.types import EMPTY, Json, JsonObject, ToolCall

# Where each type of call keeps its name and arguments. Other types do not exist in the published API.
BODIES: Final = {"function": "arguments", "custom": "input"}
UNNAMED: Final = "unknown"
# `index` belongs to stream deltas; clients that collect deltas carelessly store it.
_READ: Final = frozenset({"id", "type", "function", "custom", "index"})
_PLAIN: Final = frozenset({"id", "type", "function"})
_FLAT: Final = frozenset({"name", "arguments"})


def read_calls(value: Json, index: int, faults: Faults) -> tuple[ToolCall, ...]:
    """The calls in `tool_calls`. Faults: CALLS_TYPE, CALLS_EMPTY and those of each call.

    An entry that is no object names no function and is left out. A missing id stays empty: what it answers to is
    found when calls and results are paired.
    """
    if not isinstance(value, list):
        faults.add("CALLS_TYPE", index, ".tool_calls", f"tool_calls is {kind_of(value)}, not an array")
        value = [value] if isinstance(value, dict) else []
    elif not value:
        faults.add("CALLS_EMPTY", index, ".tool_calls")
    calls = []
    for position, entry in enumerate(value):
        place = f".tool_calls[{position}]"
        if isinstance(entry, dict):
            calls.append(_read_call(entry, index, place, faults))
        else:
            faults.add("CALL_TYPE", index, place, f"a tool call is {kind_of(entry)}, not an object")
    return tuple(calls)


def _read_call(entry: dict[str, Json], index: int, place: str, faults: Faults) -> ToolCall:
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in BODIES:
        faults.add("CALL_TYPE", index, f"{place}.type", "a tool call has no known type")
        kind = "custom" if "custom" in entry else "function"
    identity = entry.get("id")
    if not isinstance(identity, str) or not identity.strip():
        faults.add("CALL_ID_MISSING", index, f"{place}.id")
        identity = derived_id(identity) or ""
    body = entry.get(kind)
    if not isinstance(body, dict):
        # Frameworks that store calls flat: {"id", "name", "arguments"}.
        body = {key: value for key, value in entry.items() if key in _FLAT}
    return ToolCall(
        identity,
        _name(body.get("name"), index, f"{place}.{kind}.name", identity, faults),
        read_arguments(body.get(BODIES[kind]), index, f"{place}.{kind}.{BODIES[kind]}", identity, faults),
        _rest(entry, kind, body),
    )


def derived_id(value: Json) -> str | None:
    """An id that was written as a number, as text, so that a call and its result still meet."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _name(name: Json, index: int, place: str, identity: str, faults: Faults) -> str:
    if isinstance(name, str) and name.strip():
        return name
    faults.add("CALL_NAME", index, place, "a tool call names no function", identity)
    return UNNAMED


def read_arguments(arguments: Json, index: int, place: str, identity: str, faults: Faults) -> str:
    """JSON text as it came, valid or not; any other value as JSON text, null as `{}`. Fault: CALL_ARGS_TYPE."""
    if isinstance(arguments, str):
        return arguments
    faults.add("CALL_ARGS_TYPE", index, place, f"arguments is {kind_of(arguments)}, not JSON text", identity)
    return "{}" if arguments is None else json_text(arguments)


def _rest(entry: dict[str, Json], kind: str, body: JsonObject) -> JsonObject:
    if entry.keys() == _PLAIN and body.keys() == _FLAT:
        return EMPTY
    flat = _FLAT if kind not in entry else frozenset()
    rest = {key: value for key, value in entry.items() if key not in _READ and key not in flat and value is not None}
    inner = {key: value for key, value in body.items() if key not in ("name", BODIES[kind])}
    if kind != "function":
        rest["type"] = kind
    if inner:
        rest[kind] = inner
    return rest or EMPTY
