"""The bytes of a response are kept within bounds of memory, and what is missing is counted."""

import sys
from typing import Final

import pytest

from gateway.recording.lines import BytesLine, CloseLine, GapLine, HeadLine
from gateway.server.inspect.captured_bytes import BackendHead, CapturedBytes, Close, Piece

MOST: Final = 100_000


def kept_of(size: int, pieces: int) -> CapturedBytes:
    kept = CapturedBytes(MOST)
    for number in range(pieces):
        kept.add_piece(Piece("backend", float(number) / 7, b"%*d" % (size, number % 10)))
    return kept


def memory(kept: CapturedBytes) -> int:
    pieces = [one for one in (*kept._first, *(kept._last or ())) if isinstance(one, Piece)]
    return sum(sys.getsizeof(part) for one in pieces for part in (one, one.at, one.data))


@pytest.mark.parametrize("size", [1, 7, 200, 5000])
def test_a_stream_in_pieces_of_any_size_stays_within_its_memory(size: int) -> None:
    kept = kept_of(size, 400_000 // (size + 100))
    assert MOST / 3 < memory(kept) <= MOST
    assert 0.9 < kept.size / memory(kept) < 1.3
    steps = kept.steps(1, 0)
    (gap,) = (step for step in steps if isinstance(step, GapLine))
    shown = sum(len(step.data.content) for step in steps if isinstance(step, BytesLine))
    assert gap.bytes + shown == size * (400_000 // (size + 100))
    assert len(kept.joined("backend")) == shown


def test_the_first_and_the_last_pieces_stay() -> None:
    kept = kept_of(1000, 300)
    times = [step.t for step in kept.steps(1, 0) if isinstance(step, BytesLine)]
    assert times[0] == 0 and times[-1] == round(299 / 7 * 1000, 3)
    assert times == sorted(times)


def test_what_fits_has_no_gap() -> None:
    steps = kept_of(100, 100).steps(1, 0)
    assert len(steps) == 100 and all(isinstance(step, BytesLine) for step in steps)


def test_of_a_head_and_of_trailers_only_what_is_known_to_be_harmless_stays() -> None:
    kept = CapturedBytes(MOST)
    fields = {"grpc-status": "0", "x-request-id": "r", "x-session-bin": "c2VjcmV0", "set-cookie": "a=b"}
    kept.add(BackendHead(0, 200, fields, False))
    kept.add(Close(1, fields))
    head, close = kept.steps(1, 0)
    assert isinstance(head, HeadLine) and isinstance(close, CloseLine)
    assert head.headers == close.trailers == {"grpc-status": "0", "x-request-id": "r"}
