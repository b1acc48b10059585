"""Converts values of a request to what the constructor of a protobuf message takes, by the type of the field.

The constructor itself checks too little: an unknown number of an enum passes, and a float32 overflows to infinity.
"""

import base64
import json
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

from adapters.proto.backend.schema import Field
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice

# What a name of the template stands for. `arguments`: JSON text that a model wrote, valid or not; `opaque`: state of
# the backend, of which bytes are base64; `any`: the client's own field.
Kind = Literal["text", "integer", "number", "flag", "object", "arguments", "bytes", "opaque", "any"]
# Any: a value as the constructor takes it.
Value: TypeAlias = Any
Convert: TypeAlias = Callable[[Value, list[Notice]], Value]

STRUCT: Final = "google.protobuf.Struct"
VALUE: Final = "google.protobuf.Value"
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_SINGLE: Final = struct.Struct("<f")
_FLOAT: Final = 3.4028234663852886e38
_BOUNDS: Final[Mapping[int, tuple[float, float]]] = {
    **dict.fromkeys((FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_ENUM), (-(2**31), 2**31 - 1)),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_FLOAT: (-_FLOAT, _FLOAT),
    # A whole number of JSON may be larger than any double.
    FieldDescriptor.CPPTYPE_DOUBLE: (-sys.float_info.max, sys.float_info.max),
}
_INTEGERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
_FLOATS: Final = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})


def type_name(field: Field) -> str:
    """Returns the type of a field as a .proto file names it."""
    if field.message_type is not None:
        return str(field.message_type.full_name)
    if field.enum_type is not None:
        return str(field.enum_type.full_name)
    return _SCALARS[field.type]


def is_map(field: Field) -> bool:
    """Returns whether the field is a map."""
    return bool(field.is_repeated) and field.message_type is not None and field.message_type.GetOptions().map_entry


def item_of(field: Field) -> Field:
    """Returns the field that describes one item: of a map its values, of any other field itself."""
    return field.message_type.fields_by_name["value"] if is_map(field) else field


_SCALARS: Final = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}


def converter(kind: Kind, field: Field, name: str) -> Convert | None:
    """Returns the conversion of a value of this kind to one value of a field that is no message, or is a wrapper; None:
    there is none. `name` is that of the template, for errors. The conversion raises InvalidRequest for a value that
    the field cannot hold."""
    if field.message_type is not None and field.message_type.full_name in WRAPPERS:
        inner = converter(kind, field.message_type.fields_by_name["value"], name)
        return None if inner is None else lambda value, notices: {"value": inner(value, notices)}
    return None if field.message_type is not None else _to_scalar(kind, field, name)


def _to_scalar(kind: Kind, field: Field, name: str) -> Convert | None:
    if kind == "any":
        return _checked(field, name)
    if kind == "bytes":
        return _same if field.type == FieldDescriptor.TYPE_BYTES else None
    if kind == "flag":
        return _same if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else None
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        as_bytes = field.type == FieldDescriptor.TYPE_BYTES
        if kind == "opaque":
            return _state_bytes if as_bytes else _same
        if kind in ("text", "arguments"):
            return _utf8 if as_bytes else _same
        return (_json_bytes if as_bytes else _json_text) if kind == "object" else None
    if (kind == "integer" and field.cpp_type in _INTEGERS | _FLOATS) or (
        kind == "number" and field.cpp_type in _FLOATS
    ):
        return _bounded(field, name)
    return None


def _same(value: Value, _: list[Notice]) -> Value:
    return value


def _utf8(value: Value, _: list[Notice]) -> Value:
    return value.encode()


def _state_bytes(value: Value, _: list[Notice]) -> Value:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise InvalidRequest("The request has state of the backend that is not what the backend sent.") from error


def _json_text(value: Value, _: list[Notice]) -> Value:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_bytes(value: Value, _: list[Notice]) -> Value:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _bounded(field: Field, name: str) -> Convert:
    least, most = _BOUNDS[field.cpp_type]
    single = field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT

    def convert(value: Value, notices: list[Notice]) -> Value:
        if not least <= value <= most:
            raise InvalidRequest(f"{name.removeprefix('$')} is out of the range of the backend's field.")
        if single and (sent := _SINGLE.unpack(_SINGLE.pack(value))[0]) != value:
            detail = f"{name.removeprefix('$')} is sent as {sent!r}, the nearest number of 32 bits"
            notices.append(Notice("encode", "changed", "NUMBER_INEXACT", detail, level="debug"))
        return value

    return convert


def _checked(field: Field, name: str) -> Convert:
    """Takes a field of the client as it is, where its type is that of the backend's field."""
    field_name = name.removeprefix("$request.")

    def convert(value: Value, notices: list[Notice]) -> Value:
        if not fits(value, field):
            raise InvalidRequest(f"{field_name} must be a value of the type {type_name(field)}.", param=field_name)
        return value.encode() if field.type == FieldDescriptor.TYPE_BYTES else value

    return convert


def fits(value: Json, field: Field) -> bool:
    """Returns whether a JSON value is a value of this field: of its type, in its range, or the name of a value of its
    enum."""
    if field.message_type is not None:
        wrapped = field.message_type.full_name in WRAPPERS
        return wrapped and fits(value, field.message_type.fields_by_name["value"])
    if field.enum_type is not None:
        return isinstance(value, str) and value in field.enum_type.values_by_name
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return isinstance(value, bool)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return isinstance(value, str)
    least, most = _BOUNDS[field.cpp_type]
    if isinstance(value, bool):
        return False
    if isinstance(value, int) or (field.cpp_type in _FLOATS and isinstance(value, float)):
        return least <= value <= most
    return False


def no_value(value: Json, field: Field) -> str:
    """Returns the reason why a JSON value, which does not fit the field, is refused; of an enum's number its name."""
    reason = f"{json.dumps(value)} is no value of {type_name(field)}"
    known = None if field.enum_type is None or type(value) is not int else field.enum_type.values_by_number.get(value)
    return reason if known is None else f"{reason}; write its name, {known.name}"


def literal(value: Json, field: Field) -> Value:
    """Returns a value of the template, which `fits` the field, as the constructor takes it."""
    if field.message_type is not None:
        return {"value": literal(value, field.message_type.fields_by_name["value"])}
    return value.encode() if isinstance(value, str) and field.type == FieldDescriptor.TYPE_BYTES else value
