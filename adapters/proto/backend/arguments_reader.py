"""Writes the arguments of a call as JSON text, from the forms that they have in protobuf messages.

Integers of 64 bits stay numbers, bytes are base64, and enums are names.
"""

import base64
import json
import math
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.field_getters import Place
from adapters.proto.backend.field_values import WRAPPERS, is_map
from adapters.proto.backend.schema import Field
from gateway.core.conversation import EMPTY, Json, JsonObject, ToolSpec
from gateway.core.errors import InvalidToolCall
from gateway.framing.json_text import NotJson, decode_json
from gateway.protobuf.arguments import encode_arguments
from gateway.protobuf.tool_schema import Schema, Steps
from gateway.tool_calls.parsers.declared_tools import typed, types_of

# From this magnitude on, readers of JSON that know only doubles lose digits.
_INEXACT_FROM: Final = 2**53


class ArgumentsReader:
    """Writes the arguments of one response, with the keys and the types that the schemas of the tools describe."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._parameters = {tool.name: tool.parameters for tool in tools}
        self._steps = Steps()
        self._schemas: dict[str, Schema] = {}

    def read(self, found: Place, arguments: Any, name: str, writer: AnswerWriter) -> str:
        """Returns a Struct, a map or a message as JSON text. (Any: its class is of the schema's own pool.) Raises
        InvalidToolCall for a number that JSON does not have."""
        if found.leaf == "struct":
            return self._struct(arguments, name, writer)
        parameters = self._parameters.get(name, EMPTY)
        members = _map(found, arguments, parameters) if found.leaf == "map" else _message(arguments, parameters)
        if any(map(_is_large, members.values())):
            writer.note_once("changed", "NUMBER_INEXACT", "a number of a call is beyond what doubles hold exactly")
        order = [key for key in self._schema(name).root.order if key in members] if found.leaf == "map" else []
        ordered = {key: members[key] for key in [*order, *sorted(members.keys() - set(order))]} if order else members
        return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))

    def _struct(self, arguments: Any, name: str, writer: AnswerWriter) -> str:
        encoded = encode_arguments(arguments, self._schema(name))
        if encoded.inexact:
            detail = "numbers of a call may have lost digits: the wire carries doubles"
            writer.note_once("changed", "NUMBER_INEXACT", detail)
        if self._steps.exhausted:
            detail = "the schema of a tool has too many references to follow"
            writer.note_once("seen", "SCHEMA_NOT_FOLLOWED", detail)
        return encoded.text

    def _schema(self, name: str) -> Schema:
        declared = name if name in self._parameters else ""
        if declared not in self._schemas:
            self._schemas[declared] = Schema(self._parameters.get(declared, EMPTY), self._steps)
        return self._schemas[declared]


def _map(found: Place, arguments: Any, parameters: JsonObject) -> dict[str, Json]:
    """Returns the members of a map. A text is the value that it writes where the schema asks for another type."""
    value = found.field.message_type.fields_by_name["value"]
    members = {str(key): _field_json(item, value) for key, item in arguments.items()}
    for key, member in members.items():
        if isinstance(member, str):
            members[key] = _typed(member, parameters, key)
    return dict(sorted(members.items()))


def _typed(text: str, parameters: JsonObject, key: str) -> Json:
    """Returns the value that a text writes; the text itself for a number that is too large for readers of JSON."""
    try:
        return decode_json(typed(text, types_of(parameters, key)).encode())
    except NotJson:
        return text


def _message(arguments: Any, parameters: JsonObject) -> dict[str, Json]:
    """Returns the fields that have a value. A required one without presence has one even if that is the default."""
    members: dict[str, Json] = {
        field.name: _field_json(value, field) for field, value in arguments.ListFields() if not field.is_extension
    }
    required = parameters.get("required")
    for field in arguments.DESCRIPTOR.fields:
        if isinstance(required, list) and field.name in required and not field.has_presence:
            members.setdefault(field.name, _field_json(getattr(arguments, field.name), field))
    return members


def _is_large(value: Json) -> bool:
    return isinstance(value, int) and abs(value) > _INEXACT_FROM


def _field_json(value: Any, field: Field) -> Json:
    """Returns the value of a field as JSON. (Any: its class exists only at run time.) Raises InvalidToolCall for a
    number that JSON does not have."""
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _item_json(item, inner) for key, item in value.items()}
    return [_item_json(item, field) for item in value] if field.is_repeated else _item_json(value, field)


def _item_json(value: Any, field: Field) -> Json:
    if field.message_type is not None:
        return _message_json(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return int(value) if known is None else str(known.name)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidToolCall("The backend sent a tool call with a number that JSON cannot represent.")
    scalar: Json = value
    return scalar


def _message_json(message: Any) -> Json:
    name = message.DESCRIPTOR.full_name
    if name in WRAPPERS:
        return _item_json(message.value, message.DESCRIPTOR.fields_by_name["value"])
    if name.startswith("google.protobuf."):
        try:
            known: Json = MessageToDict(message)
        except (TypeError, ValueError) as error:
            raise InvalidToolCall("The backend sent a tool call with a value that JSON cannot represent.") from error
        return known
    return {field.name: _field_json(value, field) for field, value in message.ListFields()}
