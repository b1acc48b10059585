"""Encodes a call's arguments, a protobuf Struct, as the JSON text that the tool's own schema describes.

A Struct holds only doubles and has no key order. Whole numbers are therefore written without a fraction (a tool that
requires an integer rejects `5.0`, no tool rejects `5`). The keys follow the order of the schema; the others are sorted
by name.
"""

import json
import math
from typing import Final

import msgspec
from google.protobuf.struct_pb2 import Struct, Value

from gateway.core.conversation import Json
from gateway.core.errors import InvalidToolCall
from gateway.protobuf.tool_schema import Place, Schema

# From this magnitude on, one double may stand for several whole numbers (IEEE 754, binary64).
_INEXACT_FROM: Final = 2**53
_LONGEST_INTEGER: Final = 2**64


class Arguments(msgspec.Struct, frozen=True):
    """The JSON text of an object, and the count of its whole numbers that the wire cannot have carried exactly."""

    text: str
    inexact: int


def encode_arguments(args: Struct, schema: Schema) -> Arguments:
    """Encodes the Struct as JSON text. Raises InvalidToolCall for a number that JSON cannot represent."""
    writer = _Writer()
    value = writer.members(args, schema.root)
    return Arguments(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False), writer.inexact)


class _Writer:
    # The recursion is bounded: the protobuf parser rejects messages that are nested deeper than 100.
    def __init__(self) -> None:
        self.inexact = 0

    def members(self, struct: Struct, place: Place) -> dict[str, Json]:
        rank = place.order
        keys = sorted(struct.fields, key=lambda key: (rank.get(key, len(rank)), key))
        return {key: self._value(struct.fields[key], place.member(key)) for key in keys}

    def _value(self, value: Value, place: Place) -> Json:
        match value.WhichOneof("kind"):
            case "number_value":
                return self._number(value.number_value, place)
            case "string_value":
                return value.string_value
            case "bool_value":
                return value.bool_value
            case "struct_value":
                return self.members(value.struct_value, place)
            case "list_value":
                values = enumerate(value.list_value.values)
                return [self._value(element, place.element(position)) for position, element in values]
            case _:
                return None

    def _number(self, number: float, place: Place) -> Json:
        if not math.isfinite(number):
            raise InvalidToolCall("The backend sent a tool call with a number that JSON cannot represent.")
        if not number.is_integer() or (number == 0 and math.copysign(1, number) < 0):
            return number
        if abs(number) < _INEXACT_FROM:
            return int(number)
        allowed = place.types
        if "number" in allowed and "integer" not in allowed:
            return number
        self.inexact += 1
        return int(number) if "integer" in allowed or abs(number) < _LONGEST_INTEGER else number
