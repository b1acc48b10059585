"""Cuts the bytes of a connection into frames, and refuses frames that no sound backend sends. No IO.

Source: RFC 9113, sections 4.1 and 10.5.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from gateway.server.upstream.http.errors import HttpProtocolError


class FrameType(IntEnum):
    """The types of frames that matter here (RFC 9113, section 6)."""

    DATA = 0
    SETTINGS = 4
    GOAWAY = 7
    CONTINUATION = 9


class Frame(NamedTuple):
    """One frame: its type and all its bytes."""

    type: int
    data: bytes

    @property
    def payload(self) -> bytes:
        return self.data[HEADER:]


HEADER: Final = 9
MAX_FRAME: Final = 2**14
MAX_CONTINUATIONS: Final = 8
# Frames without data that a backend may send in a second. A request allows more, as does each frame of its body: they
# are followed by a response's head, by WINDOW_UPDATE and by PING.
FREE_FRAMES: Final = 200
FRAMES_PER_REQUEST: Final = 8
FRAMES_PER_DATA: Final = 4


class FrameReader:
    """Limits the length of a frame, the number of CONTINUATION frames in a row, and that of frames without data."""

    def __init__(self) -> None:
        self._held = bytearray()
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
        held = self._held
        held += data
        while len(held) >= HEADER:
            length = int.from_bytes(held[:3], "big")
            if length > MAX_FRAME:
                raise HttpProtocolError
            end = HEADER + length
            if len(held) < end:
                return
            frame = Frame(held[3], bytes(held[:end]))
            del held[:end]
            self._check(frame.type, length)
            yield frame

    def _check(self, kind: int, length: int) -> None:
        if kind == FrameType.DATA and length:
            return
        self._continuations = self._continuations + 1 if kind == FrameType.CONTINUATION else 0
        self._allowed -= 1
        if self._continuations > MAX_CONTINUATIONS or self._allowed < 0:
            raise HttpProtocolError
