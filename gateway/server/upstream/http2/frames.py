"""Cuts the bytes of a connection into frames, refuses frames that no sound backend sends, and encodes some. No IO.

Source: RFC 9113, sections 4.1, 6 and 10.5.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from gateway.server.upstream.http.errors import HttpProtocolError


class FrameType(IntEnum):
    """The types of frames that matter here."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    PUSH_PROMISE = 5
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


# Flags of frames.
END_STREAM: Final = 1
END_HEADERS: Final = 4
PADDED: Final = 8


class Frame(NamedTuple):
    """One frame."""

    type: int
    flags: int
    stream_id: int
    payload: bytes

    def encoded(self) -> bytes:
        """Returns the bytes of the frame."""
        size = len(self.payload)
        return _HEADER.pack(size >> 8, size & 255, self.type, self.flags, self.stream_id) + self.payload

    def unpadded(self) -> bytes:
        """Returns the payload of a DATA frame without its padding. Raises HttpProtocolError."""
        if not self.flags & PADDED:
            return self.payload
        if not self.payload or self.payload[0] >= len(self.payload):
            raise HttpProtocolError
        return self.payload[1 : len(self.payload) - self.payload[0]]


MAX_FRAME: Final = 2**14
MAX_CONTINUATIONS: Final = 8
# Frames without data that a backend may send in a second. A request allows more, as does each frame of its body: they
# are followed by a response's head, by WINDOW_UPDATE and by PING.
FREE_FRAMES: Final = 200
FRAMES_PER_REQUEST: Final = 8
FRAMES_PER_DATA: Final = 4

# The length in two parts, type, flags, stream.
_HEADER: Final = struct.Struct(">HBBBI")
_STREAM_ID: Final = 2**31 - 1
_BEGINS_BLOCK: Final = (FrameType.HEADERS, FrameType.PUSH_PROMISE, FrameType.CONTINUATION)
# Where every frame counts: to read a member from its class takes a call in Python 3.11.
_DATA: Final = FrameType.DATA


class FrameReader:
    """Limits the length of a frame, the number of CONTINUATION frames in a row, and that of frames without data."""

    def __init__(self) -> None:
        self._held = b""
        # A block of headers has begun and not ended: nothing but its continuation may follow.
        self._in_block = False
        self._continuations = 0
        self._allowed = FREE_FRAMES
        self._allowed_at = 0.0

    def allow(self, frames: int) -> None:
        """Allows further frames without data, for something that was sent."""
        self._allowed += frames

    def feed(self, data: bytes, now: float) -> Iterator[Frame]:
        """Yields whole frames; `now` is in seconds. Raises HttpProtocolError, after the frames before the fault."""
        if now - self._allowed_at >= 1:
            self._allowed, self._allowed_at = max(self._allowed, FREE_FRAMES), now
        if self._held:
            data = self._held + data
        at = 0
        while (begin := at + _HEADER.size) <= len(data):
            high, low, kind, flags, stream_id = _HEADER.unpack_from(data, at)
            end = begin + (high << 8 | low)
            if end - begin > MAX_FRAME:
                raise HttpProtocolError
            if end > len(data):
                break
            if kind != _DATA or end == begin or self._in_block:
                self._check(kind, flags)
            yield Frame(kind, flags, stream_id & _STREAM_ID, data[begin:end])
            at = end
        self._held = data[at:]

    def _check(self, kind: int, flags: int) -> None:
        continues = kind == FrameType.CONTINUATION
        self._continuations = self._continuations + 1 if continues else 0
        self._allowed -= 1
        if self._in_block > continues or self._continuations > MAX_CONTINUATIONS or self._allowed < 0:
            raise HttpProtocolError
        self._in_block = kind in _BEGINS_BLOCK and not flags & END_HEADERS


def window_update(stream_id: int, size: int) -> bytes:
    """Returns the frame that widens the window of a stream, or of the connection (0)."""
    return Frame(FrameType.WINDOW_UPDATE, 0, stream_id, size.to_bytes(4, "big")).encoded()
