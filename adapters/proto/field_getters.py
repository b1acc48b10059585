"""Compiles paths of a mapping, such as `delta.content`, to getters, checked against the type of the message."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec
from google.protobuf.descriptor import FieldDescriptor

from adapters.proto.field_values import STRUCT, fits, type_name
from adapters.proto.mapping_error import mapping_error, unknown_name
from adapters.proto.options import Conditions
from adapters.proto.schema import Field, MessageType

# Any: a message whose class exists only at run time, and the values of its fields.
Getter: TypeAlias = Callable[[Any], Any]
Condition: TypeAlias = Callable[[Any], bool]
Leaf = Literal["text", "bytes", "integer", "enum", "flag", "struct", "message", "other"]

_INTEGERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)


class Place(msgspec.Struct, frozen=True):
    """A path that exists: its last field, the getter of the value, and the getter of the message that has the field."""

    field: Field
    get: Getter
    owner: Getter

    @property
    def leaf(self) -> Leaf:
        """Return what the field holds."""
        field = self.field
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


def _itself(message: Any) -> Any:
    return message


def find_place(written: str, kind: MessageType, place: str, leaves: Mapping[Leaf, str] | None = None) -> Place:
    """Return the field at a path below a message. Raises OptionError for a path that does not exist, that leads into a
    repeated field, or whose field has a type that `leaves` does not list."""
    *above, last = written.split(".")
    for name in above:
        field = _field(name, kind, place)
        if field.message_type is None:
            raise mapping_error(place, f"{name!r} is a field of {type_name(field)}, which has no fields")
        kind = field.message_type
    found = Place(_field(last, kind, place), attrgetter(written), attrgetter(".".join(above)) if above else _itself)
    if leaves is not None and found.leaf not in leaves:
        raise mapping_error(
            place, f"{last!r} is of {type_name(found.field)}; it must be {' or '.join(leaves.values())}"
        )
    return found


def find_items(written: str, kind: MessageType, place: str) -> tuple[Getter, MessageType]:
    """Return the getter of a repeated field of messages, and the type of its items. Raises OptionError."""
    *above, last = written.split(".")
    for name in above:
        field = _field(name, kind, place)
        if field.message_type is None:
            raise mapping_error(place, f"{name!r} is a field of {type_name(field)}, which has no fields")
        kind = field.message_type
    if last not in kind.fields_by_name:
        raise unknown_name(place, f"{kind.full_name} has no field {last!r}", last, kind.fields_by_name)
    field = kind.fields_by_name[last]
    if not field.is_repeated or field.message_type is None or field.message_type.GetOptions().map_entry:
        raise mapping_error(place, f"{last!r} is no repeated field of messages")
    return attrgetter(written), field.message_type


def _field(name: str, kind: MessageType, place: str) -> Field:
    if name not in kind.fields_by_name:
        raise unknown_name(place, f"{kind.full_name} has no field {name!r}", name, kind.fields_by_name)
    field = kind.fields_by_name[name]
    if field.is_repeated:
        raise mapping_error(place, f"{name!r} is repeated; use each")
    return field


def conditions(written: Conditions, kind: MessageType, place: str) -> Condition:
    """Compile conditions, which all must hold. Raises OptionError for a value that the field cannot have."""
    checks = [
        _condition(find_place(path, kind, f"{place}.{path}"), value, f"{place}.{path}")
        for path, value in written.items()
    ]
    if len(checks) == 1:
        return checks[0]
    return lambda message: all([check(message) for check in checks])


def is_set(found: Place) -> Condition:
    """Compile the question whether a field has a value: its presence, or else a value that is not the default."""
    name, owner, default = found.field.name, found.owner, found.field.default_value
    if found.field.has_presence:
        return lambda message: owner(message).HasField(name)
    return lambda message: found.get(message) != default


def _condition(found: Place, value: bool | int | str, place: str) -> Condition:
    if value in ("set", "unset"):
        check = is_set(found)
        return check if value == "set" else lambda message: not check(message)
    enum, get = found.field.enum_type, found.get
    if enum is not None and isinstance(value, str):
        if value not in enum.values_by_name:
            raise unknown_name(place, f"{enum.full_name} has no value {value!r}", value, enum.values_by_name)
        number = enum.values_by_name[value].number
        return lambda message: get(message) == number
    if found.field.message_type is not None or not fits(value, found.field):
        raise mapping_error(place, f'{value!r} is no value of {type_name(found.field)}; "set" and "unset" ask for one')
    wanted = value.encode() if isinstance(value, str) and found.leaf == "bytes" else value
    return lambda message: get(message) == wanted
