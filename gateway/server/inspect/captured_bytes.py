"""Holds the reads and writes of one request by reference, up to a size in memory; of more, the first and the last.

Every time is that of the monotonic clock, in seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.recording.heads import backend_headers, headers_of
from gateway.recording.lines import Absence, BytesLine, CloseLine, GapLine, HeadLine, Side, data_of
from gateway.recording.recording import Step


# Values that hold no container cost the collector nothing.
class Piece(msgspec.Struct, frozen=True, gc=False, array_like=True, tag="piece"):
    """A read or a write; `quiet` as in BytesLine."""

    side: Side
    at: float
    data: bytes
    quiet: bool = False


class BackendHead(msgspec.Struct, frozen=True, array_like=True, tag="backend_head"):
    """The head of the backend's response; `compressed` as in HeadLine."""

    at: float
    status: int
    headers: Mapping[str, str]
    compressed: bool


class ClientHead(msgspec.Struct, frozen=True, array_like=True, tag="client_head"):
    """The head of the client's response."""

    at: float
    status: int
    headers: Sequence[tuple[bytes, bytes]]


class Close(msgspec.Struct, frozen=True, array_like=True, tag="close"):
    """The backend's body is complete."""

    at: float
    trailers: Mapping[str, str]


# What a piece holds in memory beside its data: itself, its time, and the head of its bytes.
_PIECE: Final = 112
# This share of the bound is dropped at once.
_SLACK: Final = 16
# A part without bytes is never dropped.
Part: TypeAlias = Piece | BackendHead | ClientHead | Close


class CapturedBytes(msgspec.Struct, array_like=True):
    """The parts that went over both wires, in order: at most `most` bytes of memory. `size` is the memory that they
    take: of a stream in small pieces several times its data."""

    most: int
    size: int = 0
    _first: list[Part] = []
    # None until the first half is full.
    _last: list[Part] | None = None
    _missing: dict[Side, int] = {}
    # Whether they were never kept; else they are over the bound.
    _skipped: bool = False

    def add_piece(self, piece: Piece) -> None:
        """Adds a read or a write, and drops from the middle what is too much. One that is larger than half of the bound
        leaves no room for others, and is missing."""
        size, half = len(piece.data) + _PIECE, self.most // 2
        if self._last is None and self.size + size <= half:
            self._first.append(piece)
            self.size += size
            return
        if self._last is None:
            self._last = []
        if size > half:
            self._miss(piece)
        else:
            self._last.append(piece)
            self.size += size
            self._drop_first(self._last)

    def add(self, part: BackendHead | ClientHead | Close) -> None:
        """Adds a part without bytes."""
        if self._last is None:
            self._first.append(part)
        else:
            self._last.append(part)

    def drop_backend(self) -> None:
        """Forgets what the backend has sent."""
        kept = [part for part in (*self._first, *(self._last or ())) if not _is_of_backend(part)]
        self._first, self._last = kept, None
        self._missing.pop("backend", None)
        self.size = sum([len(part.data) + _PIECE for part in kept if isinstance(part, Piece)])

    def skip(self, side: Side, size: int) -> None:
        """Records that so many bytes of one side, which were never kept, are missing here."""
        self._last = self._last or []
        self._missing[side] = size
        self._skipped = True

    def _drop_first(self, last: list[Part]) -> None:
        if self.size <= self.most:
            return
        # Some more than is too much: what is dropped one by one moves all others each time.
        wanted = self.most - self.most // _SLACK
        dropped = 0
        while self.size > wanted and dropped < len(last) - 1:
            part = last[dropped]
            dropped += 1
            if isinstance(part, Piece):
                self.size -= len(part.data) + _PIECE
                self._miss(part)
            else:
                self._first.append(part)
        del last[:dropped]

    def _miss(self, piece: Piece) -> None:
        self._missing[piece.side] = self._missing.get(piece.side, 0) + len(piece.data)

    def copied(self) -> "CapturedBytes":
        """Returns a copy, to which nothing more is added."""
        last = None if self._last is None else [*self._last]
        return msgspec.structs.replace(self, _first=[*self._first], _last=last, _missing={**self._missing})

    def joined(self, side: Side) -> bytes:
        """Returns the captured bytes of one side."""
        pieces = (part for part in (*self._first, *(self._last or ())) if isinstance(part, Piece))
        return b"".join(piece.data for piece in pieces if piece.side == side)

    def steps(self, x: int, began: float) -> tuple[Step, ...]:
        """Returns everything as lines of a recording, whose times count from `began`; a gap says how much is
        missing."""
        last = self._last or ()
        t = next((milliseconds(part.at - began) for part in last), 0.0)
        why: Absence = "never_kept" if self._skipped else "over_the_cap"
        gaps = [GapLine(x, side, t, size, why) for side, size in self._missing.items()]
        before, after = (tuple(_line(part, x, began) for part in some) for some in (self._first, last))
        return (*before, *gaps, *after)


def _is_of_backend(part: Part) -> bool:
    return isinstance(part, BackendHead | Close) or (isinstance(part, Piece) and part.side == "backend")


def milliseconds(seconds: float) -> float:
    """Returns a span as a recording holds it."""
    return round(seconds * 1000, 3)


def _line(part: Part, x: int, began: float) -> Step:
    t = milliseconds(part.at - began)
    match part:
        case Piece():
            return BytesLine(x, part.side, t, data_of(part.data), part.quiet)
        case BackendHead():
            return HeadLine(x, "backend", t, part.status, backend_headers(part.headers), part.compressed)
        case ClientHead():
            return HeadLine(x, "client", t, part.status, headers_of(part.headers))
        case Close():
            return CloseLine(x, t, backend_headers(part.trailers))
