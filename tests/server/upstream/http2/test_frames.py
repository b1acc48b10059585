"""Tests how bytes are cut into frames, and which frames are too many."""

from collections.abc import Sequence

import pytest

from gateway.server.upstream.http.errors import HttpProtocolError
from gateway.server.upstream.http2.frames import (
    FRAMES_PER_DATA,
    FREE_FRAMES,
    MAX_CONTINUATIONS,
    MAX_FRAME,
    PADDED,
    Frame,
    FrameReader,
    FrameType,
)
from tests.server.upstream.http2.peer import frame

PING = frame(6, payload=bytes(8))
WIRE = frame(4) + frame(FrameType.DATA, 1, b"abc") + PING + frame(99, 3, b"x" * 300)


def read(reader: FrameReader, pieces: Sequence[bytes], now: float = 0) -> list[tuple[int, bytes]]:
    return [(one.type, one.payload) for piece in pieces for one in reader.feed(piece, now)]


@pytest.mark.parametrize("size", [1, 2, 8, 9, 10, 1000])
def test_frames_do_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    pieces = [WIRE[at : at + size] for at in range(0, len(WIRE), size)]
    assert read(FrameReader(), pieces) == [(4, b""), (0, b"abc"), (6, bytes(8)), (99, b"x" * 300)]


def test_the_largest_frame_passes_and_a_larger_one_is_refused_by_its_length() -> None:
    assert len(read(FrameReader(), [frame(0, 1, bytes(MAX_FRAME))])) == 1
    with pytest.raises(HttpProtocolError):
        read(FrameReader(), [frame(0, 1, bytes(MAX_FRAME + 1))[:9]])


def test_continuations_in_a_row_are_limited() -> None:
    more = frame(FrameType.CONTINUATION, 1, b"x")
    reader = FrameReader()
    for _ in range(3):
        read(reader, [frame(1, 1, b"x"), more * (MAX_CONTINUATIONS - 1), frame(FrameType.CONTINUATION, 1, b"x", 4)])
    with pytest.raises(HttpProtocolError):
        read(reader, [frame(1, 1, b"x"), more * (MAX_CONTINUATIONS + 1)])


@pytest.mark.parametrize("other", [PING, frame(0, 1, b"x"), frame(7, payload=bytes(8)), frame(1, 1, b"x", 4)])
def test_nothing_stands_inside_a_block_of_headers(other: bytes) -> None:
    with pytest.raises(HttpProtocolError):
        read(FrameReader(), [frame(1, 1, b"x"), other])


@pytest.mark.parametrize(("payload", "data"), [(b"\x00abc", b"abc"), (b"\x02abcxx", b"abc"), (b"\x03xxx", b"")])
def test_padding_is_taken_away(payload: bytes, data: bytes) -> None:
    assert Frame(FrameType.DATA, PADDED, 1, payload).unpadded() == data


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x04abc", b"\xff"])
def test_padding_that_is_longer_than_its_frame_is_refused(payload: bytes) -> None:
    with pytest.raises(HttpProtocolError):
        Frame(FrameType.DATA, PADDED, 1, payload).unpadded()


@pytest.mark.parametrize("idle", [PING, frame(4), frame(3, 1, bytes(4)), frame(0, 1), frame(8, 1, bytes(4)), frame(99)])
def test_frames_without_data_are_limited_in_each_second(idle: bytes) -> None:
    reader = FrameReader()
    assert len(read(reader, [idle * FREE_FRAMES], 1)) == FREE_FRAMES
    assert len(read(reader, [idle * FREE_FRAMES], 2)) == FREE_FRAMES
    with pytest.raises(HttpProtocolError):
        read(reader, [idle], 2.9)


def test_what_is_sent_allows_more_of_them_and_data_costs_none() -> None:
    reader = FrameReader()
    reader.allow(FRAMES_PER_DATA)
    wire = PING * (FREE_FRAMES + FRAMES_PER_DATA) + frame(0, 1, b"x") * 10_000
    assert len(read(reader, [wire])) == FREE_FRAMES + FRAMES_PER_DATA + 10_000
    with pytest.raises(HttpProtocolError):
        read(reader, [PING])
