"""Finds the texts in protobuf messages without their schema, and the messages in frames of gRPC."""

from collections.abc import Iterator
from typing import Final

_SHALLOW: Final = 24
_WITHOUT_WHITE: Final = str.maketrans("", "", "\t\n\r")
_HEAD: Final = 5


class _NoMessageError(ValueError):
    pass


def find_texts(data: bytes) -> list[tuple[int, int, tuple[int, ...]]] | None:
    """Returns where each text of a message begins and ends, with the numbers of the fields that lead to it; None for
    bytes that are no message.

    Without a schema a text and a message look alike where the text is printable and would be a whole message: it counts
    as a text, unless all its fields have lengths. What is taken for the wrong one keeps its size, and at most two bytes
    of a text stay as they were.
    """
    try:
        return [*_fields(data, 0, (), 0)]
    except _NoMessageError:
        return None


def grpc_messages(data: bytes) -> list[tuple[int, int]] | None:
    """Returns where each whole message begins and ends in a body of gRPC, gRPC-Web or Connect; None for a body that is
    none. A message cut off at the end is left out, as are compressed ones and those that hold trailers."""
    found: list[tuple[int, int]] = []
    at = 0
    while at + _HEAD <= len(data):
        flag, size = data[at], int.from_bytes(data[at + 1 : at + _HEAD], "big")
        if flag not in (0, 1, 2, 3, 0x80, 0x81) or size > 2**26:
            return None
        if flag == 0 and at + _HEAD + size <= len(data):
            found.append((at + _HEAD, at + _HEAD + size))
        at += _HEAD + size
    return found if data and data[0] in (0, 1) and at >= _HEAD else None


def _fields(data: bytes, base: int, path: tuple[int, ...], depth: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    if depth > _SHALLOW:
        raise _NoMessageError
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0 or number > 2**29 - 1:
            raise _NoMessageError
        if kind == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise _NoMessageError
            yield from _value(data[at : at + size], base + at, (*path, number), depth)
            at += size
        else:
            at = _skipped(data, at, kind)


def _skipped(data: bytes, at: int, kind: int) -> int:
    if kind == 0:
        return _varint(data, at)[1]
    size = {1: 8, 5: 4}.get(kind)
    if size is None or at + size > len(data):
        raise _NoMessageError
    return at + size


def _value(data: bytes, base: int, path: tuple[int, ...], depth: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    text = _text(data)
    if text is not None and not _has_lengths_only(data):
        yield base, base + len(data), path
        return
    try:
        yield from [*_fields(data, base, path, depth + 1)]
    except _NoMessageError:
        try:
            data.decode()
        except UnicodeDecodeError:
            return
        yield base, base + len(data), path


def _text(data: bytes) -> str | None:
    """Returns bytes as printable text, or None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.translate(_WITHOUT_WHITE).isprintable() else None


def _has_lengths_only(data: bytes) -> bool:
    """Returns whether the bytes are a message, all of whose fields have a length."""
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            if tag & 7 != 2 or tag >> 3 == 0:
                return False
            size, at = _varint(data, at)
            at += size
    except _NoMessageError:
        return False
    return at == len(data) and bool(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _NoMessageError
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
