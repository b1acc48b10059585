"""Replaces invalid UTF-8 in the texts of a protobuf message by U+FFFD.

The runtime rejects the whole message for one invalid byte in a text of proto3, and hands out the bytes as they are in
one of proto2, which it does not check. A response must not fail because a backend split a character; everything else
about the message must be valid. Text that is split over two events cannot be joined here, because the wire has no field
for it. (Encoding of the wire: protobuf.dev, "Encoding".)
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.protobuf.wire import varint

# The stubs define two classes of descriptors, and each returns instances of either.
Schema: TypeAlias = Any
Field: TypeAlias = Any

# Bounds the time for one message: a search takes a step for each field, however large its text is.
MOST_FIELDS: Final = 1 << 15
_VARINT: Final = 0
_LENGTH: Final = 2
_GROUP: Final = 3
_GROUP_END: Final = 4
_FIXED: Final = {1: 8, 5: 4}
# The depth limit of protobuf's own parser.
_DEEPEST: Final = 100
_LONGEST_VARINT: Final = 10
_INVALID: Final = b"\x01\xff"


class Unsearchable(ValueError):
    """The bytes are not the encoding of a message, or that of too many fields."""


def repair_texts(payload: bytes, kind: type[Message]) -> bytes | None:
    """Returns the bytes of the repaired message, or None when the fault is not in its texts or the message has too many
    fields."""
    try:
        repaired = with_utf8(payload, kind)
    except Unsearchable:
        return None
    return None if repaired is payload else repaired


def with_utf8(payload: bytes, kind: type[Message]) -> bytes:
    """Returns the message with repaired texts, the same bytes where all are right. Raises Unsearchable."""
    search = _Search(payload)
    search.fields(0, len(payload), kind.DESCRIPTOR, 0)
    return search.repaired() if search.edits else payload


def has_unchecked_texts(schema: Schema) -> bool:
    """Returns whether the runtime takes a text that is not UTF-8 anywhere in a message of this type."""
    return any(_takes_any_bytes(field) for field in _texts(schema))


def _texts(schema: Schema) -> Iterator[Field]:
    """Yields every field of text below a type of messages, each type once."""
    found, waiting = {schema.full_name}, [schema]
    while waiting:
        for field in waiting.pop().fields:
            below = field.message_type
            if field.type == FieldDescriptor.TYPE_STRING:
                yield field
            elif below is not None and below.full_name not in found:
                found.add(below.full_name)
                waiting.append(below)


def _takes_any_bytes(field: Field) -> bool:
    try:
        GetMessageClass(field.containing_type).FromString(varint(field.number << 3 | _LENGTH) + _INVALID)
    except DecodeError:
        return False
    return True


class _Search:
    """Finds the texts of one message that are not UTF-8. `edits` are the bytes that replace others: where those begin
    and end, and the new ones, in order."""

    def __init__(self, payload: bytes) -> None:
        self.edits: list[tuple[int, int, bytes]] = []
        self._payload = payload
        self._left = MOST_FIELDS

    def repaired(self) -> bytes:
        """Returns the message with the edits."""
        made: list[bytes] = []
        at = 0
        for start, end, written in self.edits:
            made += (self._payload[at:start], written)
            at = end
        return b"".join((*made, self._payload[at:]))

    def fields(self, at: int, end: int, schema: Schema, depth: int, group: int | None = None) -> tuple[int, int]:
        """Searches the fields of one message, or of the `group` with this number, whose end ends it. Returns where it
        ends and how many bytes it grows. `schema`: None for an unknown group."""
        if depth > _DEEPEST:
            raise Unsearchable
        grown = 0
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise Unsearchable
            tag, at = self._varint(at)
            number, kind = tag >> 3, tag & 7
            if kind == _LENGTH:
                field = None if schema is None else schema.fields_by_number.get(number)
                at, more = self._sized(at, end, field, depth)
                grown += more
            elif kind == _GROUP:
                field = None if schema is None else schema.fields_by_number.get(number)
                at, more = self.fields(at, end, field and field.message_type, depth + 1, number)
                grown += more
            elif kind == _GROUP_END and number == group:
                return at, grown
            else:
                at = self._skip(at, kind)
        if at > end or group is not None:
            raise Unsearchable
        return at, grown

    def _sized(self, at: int, end: int, field: Field, depth: int) -> tuple[int, int]:
        """Searches the value behind its length at a place. Returns where it ends and how many bytes both grow."""
        size, body = self._varint(at)
        stop = body + size
        if stop > end:
            raise Unsearchable
        if field is None:
            return stop, 0
        mark = len(self.edits)
        self.edits.append((at, body, b""))  # of the length, which is known behind the value
        grown = 0
        if field.type == FieldDescriptor.TYPE_STRING:
            grown = self._text(body, stop)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            grown = self.fields(body, stop, field.message_type, depth + 1)[1]
        if len(self.edits) == mark + 1:
            self.edits.pop()
            return stop, 0
        length = varint(size + grown)
        self.edits[mark] = (at, body, length)
        return stop, grown + len(length) - (body - at)

    def _text(self, start: int, end: int) -> int:
        value = self._payload[start:end]
        mended = value.decode("utf-8", "replace").encode()
        if mended == value:
            return 0
        self.edits.append((start, end, mended))
        return len(mended) - len(value)

    def _skip(self, at: int, kind: int) -> int:
        if kind == _VARINT:
            return self._varint(at)[1]
        if kind not in _FIXED:
            raise Unsearchable
        return at + _FIXED[kind]

    def _varint(self, at: int) -> tuple[int, int]:
        if at < len(self._payload) and (byte := self._payload[at]) < 128:
            return byte, at + 1
        number = 0
        for place, byte in enumerate(self._payload[at : at + _LONGEST_VARINT]):
            number |= (byte & 127) << 7 * place
            if byte < 128:
                return number, at + place + 1
        raise Unsearchable
