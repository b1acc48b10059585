"""Finds the messages in a body of protobuf, and the texts in messages without their schema."""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

_SHALLOW: Final = 24
_WITHOUT_WHITE: Final = str.maketrans("", "", "\t\n\r")
_HEAD: Final = 5
_LENGTH: Final = 4

# Where a text begins and ends, and the numbers of the fields that lead to it.
Found: TypeAlias = tuple[int, int, tuple[int, ...]]


class Part(NamedTuple):
    """Where a part of a body begins and ends. With `flags` of its envelope, or cut off, it may be no message."""

    start: int
    stop: int
    flags: int = 0


class _NoMessageError(ValueError):
    pass


class _CutError(_NoMessageError):
    """The bytes end inside a field."""


def find_texts(data: bytes, cut: bool = False) -> list[Found] | None:
    """Returns where each text of a message begins and ends, with the numbers of the fields that lead to it; None for
    bytes that are no message. `cut`: the message may be cut off, also in a text.

    Without a schema a text and a message look alike where the text is printable and would be a whole message: it counts
    as a text, unless all its fields have lengths. What is taken for the wrong one keeps its size, and at most two bytes
    of a text stay as they were. Other bytes count as a text: it may have a broken character.
    """
    try:
        return [*_fields(data, 0, (), 0, cut)]
    except _NoMessageError:
        return None


def find_parts(data: bytes, media: str) -> list[Part] | None:
    """Returns the parts of a body of gRPC, gRPC-Web or Connect, or the messages of another body of protobuf, alone or
    behind their lengths; None for a body of text. All but what stands before a part is in one."""
    enveloped = "grpc" in media or "connect" in media
    binary = "proto" in media or "octet-stream" in media
    if data[:1] in (b"\0", b"\1") and (enveloped or not binary):
        return [*_envelopes(data)]
    if not binary and _is_text(data):
        return None
    splits = ([Part(0, len(data))], [*_behind_u32(data)], [*_behind_varint(data)])
    return next((parts for cut in (False, True) for parts in splits if _are_messages(data, parts, cut)), None)


def _are_messages(data: bytes, parts: list[Part], cut: bool) -> bool:
    """Returns whether the parts are messages; `cut`: the last one may be cut off."""
    return bool(parts) and all(
        find_texts(data[part.start : part.stop], cut and part is parts[-1]) is not None for part in parts
    )


def _envelopes(data: bytes) -> Iterator[Part]:
    """Yields the messages behind a byte of flags and a length in four bytes."""
    at = 0
    while at + _HEAD <= len(data):
        start = at + _HEAD
        at = start + int.from_bytes(data[at + 1 : start], "big")
        yield Part(start, min(at, len(data)), data[start - _HEAD])


def _behind_u32(data: bytes) -> Iterator[Part]:
    at = 0
    while at + _LENGTH <= len(data):
        start = at + _LENGTH
        at = start + int.from_bytes(data[at:start], "big")
        yield Part(start, min(at, len(data)))


def _behind_varint(data: bytes) -> Iterator[Part]:
    at = 0
    while at < len(data):
        try:
            size, start = _varint(data, at)
        except _NoMessageError:
            return
        at = start + size
        yield Part(start, min(at, len(data)))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fields(data: bytes, base: int, path: tuple[int, ...], depth: int, cut: bool) -> Iterator[Found]:
    if depth > _SHALLOW:
        raise _NoMessageError
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            if number == 0 or number > 2**29 - 1:
                raise _NoMessageError
            if kind == 2:
                size, start = _varint(data, at)
                at = start + size
                if at > len(data) and not cut:
                    raise _CutError
                yield from _value(data[start:at], base + start, (*path, number), depth, at > len(data))
            else:
                at = _skipped(data, at, kind)
    except _CutError:
        if not cut:
            raise


def _skipped(data: bytes, at: int, kind: int) -> int:
    if kind == 0:
        return _varint(data, at)[1]
    size = {1: 8, 5: 4}.get(kind)
    if size is None:
        raise _NoMessageError
    if at + size > len(data):
        raise _CutError
    return at + size


def _value(data: bytes, base: int, path: tuple[int, ...], depth: int, cut: bool) -> Iterator[Found]:
    text = _text(data)
    if text is not None and not _has_lengths_only(data):
        yield base, base + len(data), path
        return
    try:
        yield from [*_fields(data, base, path, depth + 1, cut)]
    except _NoMessageError:
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
        if at >= len(data):
            raise _CutError
        if shift > 63:
            raise _NoMessageError
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
