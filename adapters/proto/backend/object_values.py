"""Converts JSON objects of a request, schemas and the arguments of calls, to the messages and maps that hold them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from google.protobuf.json_format import ParseDict, ParseError

from adapters.proto.backend.field_values import (
    STRUCT,
    VALUE,
    WRAPPERS,
    Convert,
    Kind,
    Value,
    converter,
    fits,
    is_map,
    literal,
)
from adapters.proto.backend.schema import Field, MessageType, message_class
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.protobuf.json_struct import NestedTooDeep, write_struct

# The field for arguments that are not a JSON object.
AS_TEXT: Final = "arguments"


def value_converter(kind: Kind, field: Field, name: str) -> Convert | None:
    """Returns the conversion of a value of this kind to one value of a field, of a map to the whole map; None: there is
    none. `name` is that of the template, for errors. The conversion raises InvalidRequest for a value that the field
    cannot hold."""
    message: MessageType | None = field.message_type
    if message is None or message.full_name in WRAPPERS:
        return converter(kind, field, name)
    if message.full_name == VALUE and kind == "text":
        return lambda value, notices: {"string_value": value}
    if kind not in ("object", "arguments"):
        return None
    if is_map(field):
        return _to_map(kind, message.fields_by_name["value"], name)
    if message.full_name == STRUCT:
        return lambda value, notices: _struct(value, kind, message, notices)
    if message.full_name == VALUE:
        struct = message.fields_by_name["struct_value"].message_type
        return lambda value, notices: {"struct_value": _struct(value, kind, struct, notices)}
    return _to_message(kind, message, name)


def write_object(fields: Mapping[str, Json], message: MessageType, notices: list[Notice]) -> Value:
    """Returns a Struct with these members. Raises NestedTooDeep."""
    struct: Any = message_class(message)()
    if inexact := write_struct(struct, fields):
        detail = f"{inexact} numbers have more digits than a double, the number type of the wire"
        notices.append(Notice("encode", "changed", "NUMBER_INEXACT", detail, level="warning"))
    return struct


def _struct(value: Value, kind: Kind, message: MessageType, notices: list[Notice]) -> Value:
    fields = value if kind == "object" else _object(value, notices)
    if kind == "arguments" and len(fields) > 1 and _UNORDERED not in notices:
        notices.append(_UNORDERED)
    try:
        return write_object(fields, message, notices)
    except NestedTooDeep:
        if kind == "object":
            raise InvalidRequest("A JSON schema nests deeper than the backend's message can hold.") from None
        notices.append(_AS_TEXT_NOTICE)
        return write_object({AS_TEXT: value}, message, notices)


def _to_map(kind: Kind, field: Field, name: str) -> Convert:
    """A text holds any value, as JSON unless it is a text; any other type holds its own values only."""
    texts = converter("text", field, name)

    def one(key: str, value: Json, notices: list[Notice]) -> Value:
        if texts is not None:
            return texts(value if isinstance(value, str) else msgspec.json.encode(value).decode(), notices)
        if field.message_type is not None and (convert := value_converter("object", field, name)) is not None:
            if isinstance(value, dict):
                return convert(value, notices)
        elif fits(value, field):
            return literal(value, field)
        raise InvalidRequest(f"The value {key[:64]!r} of a JSON object has a type that the backend's map cannot hold.")

    def convert(value: Value, notices: list[Notice]) -> Value:
        fields = value if kind == "object" else _object(value, notices)
        return {key: one(key, member, notices) for key, member in fields.items()}

    return convert


def _to_message(kind: Kind, message: MessageType, name: str) -> Convert:
    make = message_class(message)

    def convert(value: Value, notices: list[Notice]) -> Value:
        fields = value if kind == "object" else _object(value, notices)
        try:
            return ParseDict(dict(fields), make())
        except (ParseError, ValueError, OverflowError, RecursionError) as error:
            what = name.removeprefix("$")
            raise InvalidRequest(f"The {what} of a tool or a call do not fit the backend's {message.name}.") from error

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
_UNORDERED: Final = Notice(
    "encode", "changed", "KEY_ORDER_LOST", "a google.protobuf.Struct has no order of keys", level="debug"
)
