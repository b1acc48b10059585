"""Writes JSON objects into google.protobuf.Struct: schemas and arguments."""

import math
import sys
from typing import Final

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from gateway.core.conversation import Json, JsonObject

# A protobuf parser with default settings rejects messages nested deeper than 100. A level of JSON uses three levels,
# and nine enclose a Struct. (Without any limit a hostile schema overflows the stack of the C library.)
MAX_DEPTH: Final = 30
# Above this value a double cannot hold every integer.
MAX_EXACT: Final = 2**53


class NestedTooDeep(ValueError):
    """The object has more levels than a Struct may have."""


def write_struct(target: Struct, value: JsonObject) -> int:
    """Fills `target` with `value` and returns the count of its numbers that a double cannot hold exactly.

    Those become the nearest double, NaN becomes null. Raises NestedTooDeep.
    """
    target.SetInParent()
    return _write_object(target, value, MAX_DEPTH)


def _write_object(target: Struct, value: JsonObject, depth: int) -> int:
    if depth == 0:
        raise NestedTooDeep
    fields = target.fields
    inexact = 0
    for key, member in value.items():
        # Most values of a schema are texts.
        if type(member) is str:
            fields[key].string_value = member
        else:
            inexact += _write_value(fields[key], member, depth - 1)
    return inexact


def _write_value(target: Value, value: Json, depth: int) -> int:
    match value:
        case str():
            target.string_value = value
        case bool():
            target.bool_value = value
        case None:
            target.null_value = NULL_VALUE
        case int() | float():
            return _write_number(target, value)
        case list():
            return _write_list(target, value, depth)
        case _:
            target.struct_value.SetInParent()
            return _write_object(target.struct_value, value, depth)
    return 0


def _write_list(target: Value, value: list[Json], depth: int) -> int:
    if depth == 0:
        raise NestedTooDeep
    target.list_value.SetInParent()
    values = target.list_value.values
    return sum(_write_value(values.add(), member, depth - 1) for member in value)


def _write_number(target: Value, value: int | float) -> int:
    if isinstance(value, int):
        target.number_value = _nearest(value)
        return int(abs(value) > MAX_EXACT)
    if math.isnan(value):
        target.null_value = NULL_VALUE
        return 1
    target.number_value = max(-sys.float_info.max, min(value, sys.float_info.max))
    return int(math.isinf(value))


def _nearest(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
