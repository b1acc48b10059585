"""However large one read or write is, what is kept of a request stays within its bound, and what is missing is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.recording.lines import BytesLine, GapLine
from gateway.server.inspect.captured_bytes import CapturedBytes, Piece
from tests.server.inspect.test_captured_bytes import MOST, kept_of, memory


@pytest.mark.parametrize("size", [MOST // 2, MOST, 30 * MOST])
def test_one_piece_alone_never_exceeds_the_bound(size: int) -> None:
    """A whole answer may be written at once."""
    kept = kept_of(1000, 20)
    kept.add_piece(Piece("client", 3.0, b"x" * size))
    kept.add_piece(Piece("client", 4.0, b"the end"))
    assert memory(kept) <= MOST and 0.9 < kept.size / memory(kept) < 1.3
    assert kept.joined("client") == b"the end" and len(kept.joined("backend")) == 20_000
    (gap,) = (step for step in kept.steps(1, 0) if isinstance(step, GapLine))
    assert (gap.side, gap.bytes) == ("client", size)


@given(st.lists(st.integers(0, 2 * MOST), max_size=60))
def test_what_is_kept_and_what_is_missing_are_everything(sizes: list[int]) -> None:
    kept = CapturedBytes(MOST)
    for number, size in enumerate(sizes):
        kept.add_piece(Piece("client" if number % 3 else "backend", float(number) / 7, bytes(size)))
        assert kept.size <= MOST
    steps = kept.steps(1, 0)
    shown = sum(len(step.data.content) for step in steps if isinstance(step, BytesLine))
    assert shown + sum(step.bytes for step in steps if isinstance(step, GapLine)) == sum(sizes)
    times = [step.t for step in steps if isinstance(step, BytesLine)]
    assert times == sorted(times)
