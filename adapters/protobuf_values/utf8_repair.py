"""Replaces invalid UTF-8 in the texts of a protobuf message by U+FFFD.

Protobuf rejects the whole message for one invalid byte. A response must not fail because a backend split a character;
everything else about the message must be valid. Text that is split over two events cannot be joined here, because the
wire has no field for it. (Encoding of the wire: protobuf.dev, "Encoding".)
"""

from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

# The stubs define two classes of descriptors, and each returns instances of either.
Schema: TypeAlias = Any
Field: TypeAlias = Any

_VARINT: Final = 0
_FIXED: Final = {1: 8, 5: 4}
_LENGTH: Final = 2
# A piece of text is short; repairing a large message would take too long.
_LARGEST: Final = 64 * 1024
# The depth limit of protobuf's own parser.
_DEEPEST: Final = 100
_LONGEST_VARINT: Final = 10


class _Broken(ValueError):
    """The bytes are not the encoding of a message."""


def repair_texts(payload: bytes, kind: type[Message]) -> bytes | None:
    """Return the bytes of the repaired message, or None when the fault is not in its texts or the message is too
    large."""
    if len(payload) > _LARGEST:
        return None
    try:
        repaired = _message(payload, kind.DESCRIPTOR, 0)
    except _Broken:
        return None
    return repaired if repaired != payload else None


def _message(payload: bytes, schema: Schema, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise _Broken
    made: list[bytes] = []
    at = 0
    while at < len(payload):
        start = at
        tag, at = _varint(payload, at)
        kind = tag & 7
        if kind != _LENGTH:
            at = _skip(payload, at, kind)
            made.append(payload[start:at])
            continue
        size, body = _varint(payload, at)
        if body + size > len(payload):
            raise _Broken
        value = _value(payload[body : body + size], schema.fields_by_number.get(tag >> 3), depth)
        made += (payload[start:at], _written(len(value)), value)
        at = body + size
    return b"".join(made)


def _value(value: bytes, field: Field, depth: int) -> bytes:
    if field is None:
        return value
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _message(value, field.message_type, depth + 1)
    if field.type == FieldDescriptor.TYPE_STRING:
        return value.decode("utf-8", "replace").encode()
    return value


def _skip(payload: bytes, at: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(payload, at)[1]
    end = at + _FIXED.get(kind, len(payload) + 1)
    if end > len(payload):
        raise _Broken
    return end


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(payload[at : at + _LONGEST_VARINT]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, at + place + 1
    raise _Broken


def _written(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)
