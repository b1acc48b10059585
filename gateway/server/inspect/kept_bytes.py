"""Keeps the reads and writes of one request by reference, up to a size; of more, the first and the last."""

from collections import deque
from typing import TypeAlias

import msgspec

from gateway.recording.lines import BytesLine, CloseLine, GapLine, HeadLine, Side, data_of
from gateway.recording.recording import Step


class Piece(msgspec.Struct, frozen=True):
    """A read or a write; `t` and `quiet` as in BytesLine."""

    side: Side
    t: float
    data: bytes
    quiet: bool = False


# What has no bytes is always kept.
Kept: TypeAlias = Piece | HeadLine | CloseLine


class KeptBytes:
    """What went over both wires, in order. `size` is what is kept of it, in bytes."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._first: list[Kept] = []
        self._last: deque[Kept] = deque()
        self._last_size = 0
        self._missing: dict[Side, int] = {}
        self.size = 0

    def add(self, kept: Kept) -> None:
        """Adds the next one, and drops from the middle what is too much."""
        size = len(kept.data) if isinstance(kept, Piece) else 0
        self.size += size
        if self.size <= self._half and not self._last:
            self._first.append(kept)
            return
        self._last.append(kept)
        self._last_size += size
        while self._last_size > self._half and len(self._last) > 1:
            self._drop(self._last.popleft())

    def _drop(self, kept: Kept) -> None:
        if not isinstance(kept, Piece):
            self._first.append(kept)
            return
        size = len(kept.data)
        self._last_size -= size
        self.size -= size
        self._missing[kept.side] = self._missing.get(kept.side, 0) + size

    def joined(self, side: Side) -> bytes:
        """Returns what is kept of one side."""
        pieces = (kept for kept in (*self._first, *self._last) if isinstance(kept, Piece))
        return b"".join(piece.data for piece in pieces if piece.side == side)

    def steps(self, x: int) -> tuple[Step, ...]:
        """Returns everything as lines of a recording; a gap says how much is missing."""
        t = next((kept.t for kept in self._last), 0.0)
        gaps = [GapLine(x, side, t, size) for side, size in self._missing.items()]
        return tuple(_line(kept, x) for kept in (*self._first, *gaps, *self._last))


def _line(kept: Kept | GapLine, x: int) -> Step:
    if isinstance(kept, Piece):
        return BytesLine(x, kept.side, kept.t, data_of(kept.data), kept.quiet)
    return msgspec.structs.replace(kept, x=x)
