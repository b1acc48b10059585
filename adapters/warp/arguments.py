"""A call's arguments as a protobuf Struct -> the JSON text that the tool's own schema describes.

A Struct knows only doubles and has no order of keys. So a whole number is written without a fraction (a tool that
wants an integer refuses `5.0`, none refuses `5`), and the keys stand as the schema names them, the rest by name.
"""

import json
import math
from typing import Final

import msgspec
from google.protobuf.struct_pb2 import Struct, Value

from adapters.warp.schema import Schema, Views, key_order, types
from gateway.errors import InvalidToolCall
from gateway.types import Json, JsonObject

# From here on a double may stand for several whole numbers (IEEE 754, binary64).
_INEXACT_FROM: Final = 2**53
_LONGEST_INTEGER: Final = 2**64


class Arguments(msgspec.Struct, frozen=True):
    """The JSON text of an object, and how many whole numbers in it the wire cannot have carried exactly."""

    text: str
    inexact: int


def encode_arguments(args: Struct, parameters: JsonObject) -> Arguments:
    """The Struct as JSON text. Raises InvalidToolCall for a number that JSON cannot say."""
    writer = _Writer(Schema(parameters))
    value = writer.members(args, writer.schema.root)
    return Arguments(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False), writer.inexact)


class _Writer:
    # Recursion ends: protobuf refuses messages that are nested deeper than 100 when it reads them.
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.inexact = 0

    def members(self, struct: Struct, views: Views) -> dict[str, Json]:
        rank = key_order(views)
        keys = sorted(struct.fields, key=lambda key: (rank.get(key, len(rank)), key))
        return {key: self._value(struct.fields[key], self.schema.member(views, key)) for key in keys}

    def _value(self, value: Value, views: Views) -> Json:
        match value.WhichOneof("kind"):
            case "number_value":
                return self._number(value.number_value, views)
            case "string_value":
                return value.string_value
            case "bool_value":
                return value.bool_value
            case "struct_value":
                return self.members(value.struct_value, views)
            case "list_value":
                values = enumerate(value.list_value.values)
                return [self._value(element, self.schema.element(views, position)) for position, element in values]
            case _:
                return None

    def _number(self, number: float, views: Views) -> Json:
        if not math.isfinite(number):
            raise InvalidToolCall("The backend sent a tool call with a number that JSON cannot say.")
        if not number.is_integer() or (number == 0 and math.copysign(1, number) < 0):
            return number
        if abs(number) < _INEXACT_FROM:
            return int(number)
        allowed = types(views)
        if "number" in allowed and "integer" not in allowed:
            return number
        self.inexact += 1
        return int(number) if "integer" in allowed or abs(number) < _LONGEST_INTEGER else number
