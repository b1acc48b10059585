"""Converts values of a request to what the constructor of a protobuf message takes, by the type of the field.

The constructor itself checks too little: an unknown number of an enum passes, and a float32 overflows to infinity.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from google.protobuf.descriptor import FieldDescriptor

from adapters.proto.schema import Field, message_class
from adapters.protobuf_values.json_struct import NestedTooDeep, write_struct
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice

# What a name of the template stands for. `arguments`: JSON text that a model wrote, valid or not; `any`: the client's
# own field.
Kind = Literal["text", "integer", "number", "flag", "object", "arguments", "any"]
# Any: a value as the constructor takes it.
Value: TypeAlias = Any
Convert: TypeAlias = Callable[[Value, list[Notice]], Value]

STRUCT: Final = "google.protobuf.Struct"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_FLOAT: Final = 3.4028234663852886e38
_BOUNDS: Final[Mapping[int, tuple[float, float]]] = {
    **dict.fromkeys((FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_ENUM), (-(2**31), 2**31 - 1)),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_FLOAT: (-_FLOAT, _FLOAT),
    FieldDescriptor.CPPTYPE_DOUBLE: (-math.inf, math.inf),
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
# The field for arguments that a Struct cannot hold because they are not a JSON object.
AS_TEXT: Final = "arguments"


def type_name(field: Field) -> str:
    """Return the type of a field as a .proto file names it."""
    if field.message_type is not None:
        return str(field.message_type.full_name)
    if field.enum_type is not None:
        return str(field.enum_type.full_name)
    return _SCALARS[field.type]


_SCALARS: Final = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}


def converter(kind: Kind, field: Field, name: str) -> Convert | None:
    """Return the conversion of a value of this kind to one value of the field, or None where there is none. `name` is
    that of the template, for errors. The conversion raises InvalidRequest for a value that the field cannot hold."""
    if field.message_type is not None and field.message_type.full_name in _WRAPPERS:
        inner = converter(kind, field.message_type.fields_by_name["value"], name)
        return None if inner is None else lambda value, notices: {"value": inner(value, notices)}
    if field.message_type is not None:
        return _to_struct(kind, field) if field.message_type.full_name == STRUCT else None
    return _to_scalar(kind, field, name)


def _to_scalar(kind: Kind, field: Field, name: str) -> Convert | None:
    if kind == "any":
        return _checked(field, name)
    if kind == "flag":
        return _same if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else None
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        as_bytes = field.type == FieldDescriptor.TYPE_BYTES
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


def _json_text(value: Value, _: list[Notice]) -> Value:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_bytes(value: Value, _: list[Notice]) -> Value:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _bounded(field: Field, name: str) -> Convert:
    least, most = _BOUNDS[field.cpp_type]

    def convert(value: Value, _: list[Notice]) -> Value:
        if not least <= value <= most:
            raise InvalidRequest(f"{name.removeprefix('$')} is out of the range of the backend's field.")
        return value

    return convert


def _checked(field: Field, name: str) -> Convert:
    """Take a field of the client as it is, where its type is that of the backend's field."""
    field_name = name.removeprefix("$request.")

    def convert(value: Value, notices: list[Notice]) -> Value:
        if not fits(value, field):
            raise InvalidRequest(f"{field_name} must be a value of the type {type_name(field)}.", param=field_name)
        return value.encode() if field.type == FieldDescriptor.TYPE_BYTES else value

    return convert


def fits(value: Json, field: Field) -> bool:
    """Whether a JSON value is a value of this field: of its type, in its range, or the name of a value of its enum."""
    if field.message_type is not None:
        wrapped = field.message_type.full_name in _WRAPPERS
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


def literal(value: Json, field: Field) -> Value:
    """Return a value of the template, which `fits` the field, as the constructor takes it."""
    if field.message_type is not None:
        return {"value": literal(value, field.message_type.fields_by_name["value"])}
    return value.encode() if isinstance(value, str) and field.type == FieldDescriptor.TYPE_BYTES else value


def _to_struct(kind: Kind, field: Field) -> Convert | None:
    if kind not in ("object", "arguments"):
        return None
    make = message_class(field.message_type)

    def convert(value: Value, notices: list[Notice]) -> Value:
        fields = value if kind == "object" else _object(value, notices)
        struct: Any = make()
        try:
            inexact = write_struct(struct, fields)
        except NestedTooDeep:
            if kind == "object":
                raise InvalidRequest("A JSON schema nests deeper than the backend's message can hold.") from None
            notices.append(_AS_TEXT_NOTICE)
            struct = make()
            inexact = write_struct(struct, {AS_TEXT: value})
        if inexact:
            detail = f"{inexact} numbers have more digits than a double, the number type of the wire"
            notices.append(Notice("encode", "changed", "NUMBER_INEXACT", detail, level="warning"))
        return struct

    return convert


def _object(arguments: str, notices: list[Notice]) -> Mapping[str, Json]:
    try:
        return _DECODER.decode(arguments) if arguments.strip() else {}
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        notices.append(_AS_TEXT_NOTICE)
        return {AS_TEXT: arguments}


_DECODER: Final = msgspec.json.Decoder(dict[str, Any])
_AS_TEXT_NOTICE: Final = Notice(
    "encode",
    "changed",
    "ARGUMENTS_AS_TEXT",
    "arguments that are no JSON object of the wire are sent as text",
    level="warning",
)
