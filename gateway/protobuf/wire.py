"""Reads and writes protobuf's encoding: numbers, and fields without a schema (protobuf.dev, "Encoding")."""

from collections.abc import Iterator
from typing import Final, TypeAlias

# Where bytes begin and end.
Span: TypeAlias = tuple[int, int]

VARINT: Final = 0
LENGTH: Final = 2
_GROUPS: Final = (3, 4)
_FIXED: Final = {1: 8, 5: 4}


def varint(number: int) -> bytes:
    """Encodes a number."""
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def read_varint(payload: bytes, at: int) -> tuple[int, int]:
    """Returns the number at a position and where it ends. Raises IndexError for a number that does not end."""
    number = shift = 0
    while (byte := payload[at]) > 127:
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
    return number | byte << shift, at + 1


def skip(payload: bytes, at: int, kind: int) -> int:
    """Returns where the value of a field ends whose wire type is not `LENGTH`; what is inside a group follows it.
    Raises IndexError or KeyError for bytes that are no message."""
    if kind == VARINT:
        return read_varint(payload, at)[1]
    return at if kind in _GROUPS else at + _FIXED[kind]


def fields(payload: bytes, at: int, end: int) -> Iterator[tuple[int, int, Span]]:
    """Yields each field of a message between two positions: its number, its wire type, and where its value begins (of
    bytes behind their length) and ends. What is inside a group follows its begin. Raises IndexError or KeyError for
    bytes that are no message."""
    while at < end:
        tag, begin = read_varint(payload, at)
        kind = tag & 7
        if kind == LENGTH:
            size, begin = read_varint(payload, begin)
            at = begin + size
        else:
            at = skip(payload, begin, kind)
        yield tag >> 3, kind, (begin, at)
