"""Compiles paths of a mapping, such as `delta.content`, to getters, checked against the type of the message."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import attrgetter, methodcaller
from typing import Any, Final, Literal, TypeAlias, assert_never

import msgspec
from google.protobuf.descriptor import FieldDescriptor

from adapters.proto.backend.field_values import STRUCT, WRAPPERS, fits, is_map, item_of, no_value, type_name
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.options import Conditions
from adapters.proto.backend.paths import Key, Match, Position, Selector, Step, parse_path
from adapters.proto.backend.schema import Field, MessageType, message_class

# Any: a message whose class exists only at run time, and the values of its fields.
Getter: TypeAlias = Callable[[Any], Any]
Condition: TypeAlias = Callable[[Any], bool]
Leaf = Literal["text", "bytes", "integer", "enum", "flag", "struct", "map", "message", "other"]
# The leaves that may stand at a place, with their names for an error.
Leaves: TypeAlias = Mapping[Leaf, str]

_INTEGERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
_DEFAULTS: Final[Mapping[Leaf, object]] = {"text": "", "bytes": b"", "integer": 0, "enum": 0, "flag": False, "other": 0}


# The field of a wrapper, which is read as its value.
_WRAPPED: Final = "value"


class Place(msgspec.Struct, frozen=True):
    """A place that exists: what stands there, the getter of its value, and whether it has one. `field` is its field;
    None: it is no field of a message."""

    leaf: Leaf
    get: Getter
    is_set: Condition
    field: Field = None


def leaf_of(field: Field) -> Leaf:
    """Returns the leaf of a field, of a repeated one that of each item, of a wrapper that of its value."""
    if is_map(field):
        return "map"
    if _is_wrapper(field):
        return leaf_of(field.message_type.fields_by_name[_WRAPPED])
    if field.message_type is not None:
        return "struct" if field.message_type.full_name == STRUCT else "message"
    if field.enum_type is not None:
        return "enum"
    if field.type == FieldDescriptor.TYPE_STRING:
        return "text"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "bytes"
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "flag"
    return "integer" if field.cpp_type in _INTEGERS else "other"


def find_field(written: str, kind: MessageType, place: str, leaves: Leaves | None = None) -> Place:
    """Returns the field at a path below a message. A selected item that is missing reads as an empty one. Raises
    OptionError for a path that does not exist, that leads into a repeated field without a selector, or whose field has
    a type that `leaves` does not list."""
    *above, last = parse_path(written, place)
    owner, kind = _owner(above, kind, place)
    field = _field(last, kind, place, maps=leaves is not None and "map" in leaves)
    found = _place(field, owner) if last.selector is None else _item(field, last, owner, place)
    if leaves is not None and found.leaf not in leaves:
        reason = f"{last.name!r} is of {type_name(found.field)}; it must be {' or '.join(leaves.values())}"
        raise mapping_error(place, reason)
    return found


def find_repeated(written: str, kind: MessageType, place: str) -> tuple[Getter, MessageType]:
    """Returns the getter of a repeated field of messages, and the type of its items. Raises OptionError."""
    *above, last = parse_path(written, place)
    owner, kind = _owner(above, kind, place)
    if last.name not in kind.fields_by_name:
        raise unknown_name(place, f"{kind.full_name} has no field {last.name!r}", last.name, kind.fields_by_name)
    field = kind.fields_by_name[last.name]
    if last.selector is not None or not field.is_repeated or field.message_type is None or is_map(field):
        if last.selector is None and not field.is_repeated and field.message_type is not None:
            reason = f"{last.name!r} is one message, which needs no `each`: name it in the paths ('{written}.FIELD')"
            raise mapping_error(place, reason)
        raise mapping_error(place, f"{last.name!r} is no repeated field of messages")
    return _getter([*owner, last.name]), field.message_type


def _owner(steps: Sequence[Step], kind: MessageType, place: str) -> tuple[list[str | Getter], MessageType]:
    """Returns the way to the message at these steps, fields by name and getters of items, and its type."""
    way: list[str | Getter] = []
    for step in steps:
        field = _field(step, kind, place)
        item = item_of(field)
        if item.message_type is None:
            raise mapping_error(place, f"{step.name!r} is a field of {type_name(item)}, which has no fields")
        way.append(step.name if step.selector is None else _select(step, item, _missing(item), place))
        kind = item.message_type
    return way, kind


def _getter(way: Sequence[str | Getter]) -> Getter:
    """Returns one getter for a way; neighbours that are fields by name are read in one step."""
    getters: list[Getter] = []
    for by_name, steps in groupby(way, key=lambda step: isinstance(step, str)):
        found = list(steps)
        getters += [attrgetter(".".join(map(str, found)))] if by_name else [step for step in found if callable(step)]
    match getters:
        case []:
            return lambda message: message
        case [get]:
            return get
        case _:
            return lambda message: reduce(lambda value, get: get(value), getters, message)


def _is_wrapper(field: Field) -> bool:
    return field.message_type is not None and field.message_type.full_name in WRAPPERS


def _place(field: Field, way: list[str | Getter]) -> Place:
    name, default = field.name, field.default_value
    get = _getter([*way, name, _WRAPPED] if _is_wrapper(field) else [*way, name])
    if field.has_presence:
        return Place(leaf_of(field), get, _presence(way, name), field)
    if field.is_repeated:
        return Place(leaf_of(field), get, lambda message: bool(get(message)), field)
    return Place(leaf_of(field), get, lambda message: bool(get(message) != default), field)


def _presence(way: list[str | Getter], name: str) -> Condition:
    is_set: Condition = methodcaller("HasField", name)
    if not way:
        return is_set
    owner = _getter(way)
    return lambda message: is_set(owner(message))


def _item(field: Field, step: Step, way: list[str | Getter], place: str) -> Place:
    item = item_of(field)
    missing = _missing(item)
    get = _getter([*way, _select(step, item, missing, place)])
    if item.message_type is None:
        return Place(leaf_of(item), get, lambda message: bool(get(message) != missing), item)
    value = (lambda message: get(message).value) if _is_wrapper(item) else get
    return Place(leaf_of(item), value, lambda message: get(message) is not missing, item)


def _select(step: Step, item: Field, missing: Any, place: str) -> Getter:
    """Returns the getter of the item that a step selects, or of what stands for a missing one."""
    items = attrgetter(step.name)
    match step.selector:
        case Position(position):
            return lambda message: found[position] if len(found := items(message)) > position else missing
        case Key(key):
            return lambda message: found[key] if key in (found := items(message)) else missing
        case Match() as match:
            holds = _matches(match, item, place)
            return lambda message: next((found for found in items(message) if holds(found)), missing)
        case None:
            return items
        case _:
            assert_never(step.selector)


def _missing(item: Field) -> Any:
    """Returns the value in place of an item that is missing: an empty message, or the default of its type."""
    return _DEFAULTS[leaf_of(item)] if item.message_type is None else message_class(item.message_type)()


def _matches(match: Match, item: Field, place: str) -> Condition:
    if item.message_type is None:
        raise mapping_error(place, f"[{match.field}={match.value}] needs messages; the items are of {type_name(item)}")
    found = find_field(match.field, item.message_type, place, _COMPARED)
    return _equals(found, _JSON_WORDS.get(match.value, match.value) if found.leaf == "flag" else match.value, place)


_COMPARED: Final[Leaves] = {"text": "text", "enum": "an enum", "flag": "a bool"}
_JSON_WORDS: Final = {"true": True, "false": False}


def _field(step: Step, kind: MessageType, place: str, *, maps: bool = False) -> Field:
    """Returns the field of a step, which must have a selector if and only if the field has several items."""
    name = step.name
    if name not in kind.fields_by_name:
        raise unknown_name(place, f"{kind.full_name} has no field {name!r}", name, kind.fields_by_name)
    field = kind.fields_by_name[name]
    if step.selector is None and field.is_repeated and not (maps and is_map(field)):
        raise mapping_error(place, f"{name!r} is repeated; use each")
    if step.selector is not None and not _fits_selector(field, step.selector):
        forms = '["key"]' if is_map(field) else "[0] and [name=value]" if field.is_repeated else "no items"
        raise mapping_error(place, f"{name!r} is of {type_name(field)}; it has {forms}")
    return field


def _fits_selector(field: Field, selector: Selector) -> bool:
    if is_map(field):
        of_text = field.message_type.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING
        return isinstance(selector, Key) and of_text
    return bool(field.is_repeated) and not isinstance(selector, Key)


def field_conditions(written: Conditions, kind: MessageType, place: str) -> Condition:
    """Compiles conditions, which all must hold. Raises OptionError for a value that the field cannot have."""
    checks = [
        _condition(find_field(path, kind, f"{place}.{path}"), value, f"{place}.{path}")
        for path, value in written.items()
    ]
    if len(checks) == 1:
        return checks[0]
    return lambda message: all([check(message) for check in checks])


def _condition(found: Place, value: bool | int | str, place: str) -> Condition:
    if value in ("set", "unset"):
        check = found.is_set
        return check if value == "set" else lambda message: not check(message)
    return _equals(found, value, place)


def _equals(found: Place, value: bool | int | str, place: str) -> Condition:
    enum, get = found.field.enum_type, found.get
    if enum is not None and isinstance(value, str):
        if value not in enum.values_by_name:
            raise unknown_name(place, f"{enum.full_name} has no value {value!r}", value, enum.values_by_name)
        number = enum.values_by_name[value].number
        return lambda message: bool(get(message) == number)
    if not fits(value, found.field):
        named = f"{value!r} is no value of {type_name(found.field)}" if enum is None else no_value(value, found.field)
        raise mapping_error(place, f'{named}; "set" and "unset" ask for one')
    wanted = value.encode() if isinstance(value, str) and found.leaf == "bytes" else value
    return lambda message: bool(get(message) == wanted)
