"""Reads the `tool_calls` of an assistant message as ToolCall blocks."""

from typing import Final

import msgspec

from gateway.core.call_arguments import custom_arguments
from gateway.core.conversation import EMPTY, Json, JsonObject, ToolCall
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

# The fields for the name and arguments of each type of call. The published API has no other types.
BODIES: Final = {"function": "arguments", "custom": "input"}
UNNAMED: Final = "unknown"
# `index` belongs to stream deltas; clients that merge deltas without care store it.
_READ: Final = frozenset({"id", "type", "function", "custom", "index"})
_PLAIN: Final = frozenset({"id", "type", "function"})
_FLAT: Final = frozenset({"name", "arguments"})


def read_calls(value: Json, index: int, faults: Faults) -> tuple[ToolCall, ...]:
    """Returns the calls in `tool_calls`. Faults: CALLS_TYPE, CALLS_EMPTY and those of each call.

    An entry that is no object names no function and is left out. A missing id stays empty: the pairing of calls and
    results resolves it.
    """
    if usual := plain_calls(value):
        return usual
    if not isinstance(value, list):
        faults.add("CALLS_TYPE", index, ".tool_calls", f"tool_calls is {kind_of(value)}, not an array")
        value = [value] if isinstance(value, dict) else []
    elif not value:
        faults.add("CALLS_EMPTY", index, ".tool_calls")
    calls: list[ToolCall] = []
    odd: list[int] = []
    for position, entry in enumerate(value):
        if isinstance(entry, dict):
            call = _read_call(entry, index, f".tool_calls[{position}]", faults)
            # Behind an entry that is no call the client counts further than the turn.
            calls.append(msgspec.structs.replace(call, item=position) if odd else call)
        else:
            odd.append(position)
    if odd:
        faults.add_each(
            "CALL_TYPE",
            len(odd),
            lambda n: (index, f".tool_calls[{odd[n]}]", f"a tool call is {kind_of(value[odd[n]])}, not an object"),
            "tool calls are not objects",
        )
    return tuple(calls)


def plain_calls(value: Json) -> tuple[ToolCall, ...]:
    """Returns the calls in `tool_calls` if each has the form of a function's call and no further field; else none."""
    if type(value) is not list:
        return ()
    calls: list[ToolCall] = []
    for entry in value:
        if type(entry) is not dict or len(entry) != 3 or entry.get("type") != "function":
            return ()
        identity, body = entry.get("id"), entry.get("function")
        if type(identity) is not str or type(body) is not dict or len(body) != 2:
            return ()
        name, arguments = body.get("name"), body.get("arguments")
        if type(name) is not str or type(arguments) is not str or not identity.strip() or not name.strip():
            return ()
        calls.append(ToolCall(identity, name, arguments))
    return tuple(calls)


def _read_call(entry: dict[str, Json], index: int, place: str, faults: Faults) -> ToolCall:
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in BODIES:
        faults.add("CALL_TYPE", index, f"{place}.type", "a tool call has no known type")
        kind = "custom" if entry.get("custom") and "function" not in entry else "function"
    identity = entry.get("id")
    if not isinstance(identity, str) or not identity.strip():
        faults.add("CALL_ID_MISSING", index, f"{place}.id")
        identity = derived_id(identity) or ""
    body = entry.get(kind)
    if not isinstance(body, dict):
        # Frameworks that store calls flat: {"id", "name", "arguments"}.
        flat = {key: value for key, value in entry.items() if key in _FLAT or key == BODIES[kind]}
        body = {**flat, "name": body} if _is_word(body, index, f"{place}.{kind}", faults) else flat
    at, is_custom = f"{place}.{kind}.{BODIES[kind]}", kind == "custom"
    arguments = read_arguments(body.get(BODIES[kind]), index, at, identity, faults, custom=is_custom)
    return ToolCall(
        identity,
        _name(body.get("name"), index, f"{place}.{kind}.name", identity, faults),
        custom_arguments(arguments) if is_custom else arguments,
        _rest(entry, kind, body),
    )


def _is_word(body: Json, index: int, place: str, faults: Faults) -> bool:
    """Returns whether text stands where the function should: its name."""
    if not isinstance(body, str) or not body.strip():
        return False
    faults.add("CALL_TYPE", index, place, "a function is text, not an object; it is read as its name")
    return True


def read_function_call(value: Json, index: int, faults: Faults) -> tuple[ToolCall, ...]:
    """Reads the deprecated `function_call`, which has no id. Faults: CALL_TYPE, CALL_NAME and CALL_ARGS_TYPE."""
    place = ".function_call"
    if not isinstance(value, dict):
        faults.add("CALL_TYPE", index, place, f"function_call is {kind_of(value)}, not an object")
        return ()
    name = _name(value.get("name"), index, f"{place}.name", None, faults)
    arguments = read_arguments(value.get("arguments"), index, f"{place}.arguments", None, faults)
    more = {key: field for key, field in value.items() if key not in _FLAT}
    return (ToolCall("", name, arguments, {"function": more} if more else EMPTY, id_derived=True),)


def derived_id(value: Json) -> str | None:
    """Returns an id that was written as a number as text, so that a call and its result still match."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _name(name: Json, index: int, place: str, identity: str | None, faults: Faults) -> str:
    if isinstance(name, str) and name.strip():
        return name
    faults.add("CALL_NAME", index, place, "a tool call has no function name", identity)
    return UNNAMED


def read_arguments(
    arguments: Json, index: int, place: str, identity: str | None, faults: Faults, *, custom: bool = False
) -> str:
    """Returns JSON text unchanged, valid or not; any other value as JSON text, null as `{}`. Of a `custom` tool it is
    the input: any text, null as empty text. Fault: CALL_ARGS_TYPE."""
    if isinstance(arguments, str):
        return arguments
    field, wanted, null = ("input", "text", "") if custom else ("arguments", "JSON text", "{}")
    faults.add("CALL_ARGS_TYPE", index, place, f"{field} is {kind_of(arguments)}, not {wanted}", identity)
    return null if arguments is None else encode_json(arguments)


def _rest(entry: dict[str, Json], kind: str, body: JsonObject) -> JsonObject:
    if entry.keys() == _PLAIN and body.keys() == _FLAT:
        return EMPTY
    flat = frozenset() if isinstance(entry.get(kind), dict) else _FLAT | {BODIES[kind]}
    rest = {key: value for key, value in entry.items() if key not in _READ and key not in flat and value is not None}
    inner = {key: value for key, value in body.items() if key not in ("name", BODIES[kind])}
    if kind != "function":
        rest["type"] = kind
    if inner:
        rest[kind] = inner
    return rest or EMPTY
