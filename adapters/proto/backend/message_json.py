"""Converts values of protobuf fields to JSON: integers of 64 bits stay numbers, bytes are base64, enums are names."""

import base64
import math
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict

from adapters.proto.backend.field_values import WRAPPERS, is_map
from adapters.proto.backend.schema import Field
from gateway.core.conversation import Json
from gateway.core.errors import InvalidToolCall


def field_json(value: Any, field: Field) -> Json:
    """Return the value of a field as JSON. (Any: its class exists only at run time.) Raises InvalidToolCall for a
    number that JSON does not have."""
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _item(item, inner) for key, item in value.items()}
    return [_item(item, field) for item in value] if field.is_repeated else _item(value, field)


def _item(value: Any, field: Field) -> Json:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return int(value) if known is None else str(known.name)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidToolCall("The backend sent a tool call with a number that JSON cannot represent.")
    scalar: Json = value
    return scalar


def _message(message: Any) -> Json:
    name = message.DESCRIPTOR.full_name
    if name in WRAPPERS:
        return _item(message.value, message.DESCRIPTOR.fields_by_name["value"])
    if name.startswith("google.protobuf."):
        try:
            known: Json = MessageToDict(message)
        except (TypeError, ValueError) as error:
            raise InvalidToolCall("The backend sent a tool call with a value that JSON cannot represent.") from error
        return known
    return {field.name: field_json(value, field) for field, value in message.ListFields()}
