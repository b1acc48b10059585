"""Compressed bodies are decompressed correctly for every cut, and never beyond the allowed size."""

import itertools
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.upstream.http.errors import TooLarge, Truncated
from gateway.server.upstream.http1.content_coding import FREE, PIECE, RATIO, ContentDecoder
from tests.tiers import sample

LARGE: Final = 2**30
TEXT: Final = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n' * 5


def _packed(wbits: int) -> Callable[[bytes], bytes]:
    return lambda data: zlib.compress(data, wbits=wbits)


WAYS: Final[Mapping[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "gzip": ("gzip", _packed(31)),
    "x-gzip": ("x-gzip", _packed(31)),
    "members": ("gzip", lambda data: b"".join(_packed(31)(bytes([byte])) for byte in data)),
    "deflate": ("deflate", _packed(15)),
    "raw deflate": ("deflate", _packed(-15)),
}


def decoded(coding: str, *pieces: bytes, most: int = LARGE) -> bytes:
    decoder = ContentDecoder(coding, most)
    found = b"".join([piece for data in pieces for piece in fed(decoder, data)])
    decoder.close()
    return found


def fed(decoder: ContentDecoder, data: bytes) -> Iterator[bytes]:
    """All that comes of these bytes."""
    yield decoder.feed(data)
    while decoder.pending:
        yield decoder.feed()


@pytest.mark.parametrize("way", WAYS)
@given(data=st.binary(min_size=1, max_size=300), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_what_was_compressed_comes_out_wherever_it_is_cut(way: str, data: bytes, cuts: list[int]) -> None:
    coding, pack = WAYS[way]
    packed = pack(data)
    places = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    pieces = [packed[start:end] for start, end in itertools.pairwise(places)]
    assert decoded(coding, *pieces) == data


@pytest.mark.parametrize("way", [way for way in WAYS if way != "members"])
def test_a_body_that_is_cut_off_anywhere_is_truncated(way: str) -> None:
    coding, pack = WAYS[way]
    packed = pack(TEXT)
    for end in range(1, len(packed)):
        with pytest.raises(Truncated):
            decoded(coding, packed[:end])
    assert decoded(coding, packed) == TEXT


@pytest.mark.parametrize("way", ["gzip", "deflate", "raw deflate"])
def test_what_is_flushed_comes_out_at_once(way: str) -> None:
    """A stream is compressed event by event."""
    coding, _ = WAYS[way]
    packer = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "raw deflate": -15}[way])
    decoder = ContentDecoder(coding, LARGE)
    for number in range(20):
        event = b"data: %d\n\n" % number
        assert decoder.feed(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)) == event
        assert not decoder.complete
    assert decoder.feed(packer.flush()) == b""
    assert decoder.complete


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", b"no gzip at all"),
        ("gzip", zlib.compress(TEXT, wbits=31)[:-1] + b"x"),
        ("gzip", zlib.compress(TEXT, wbits=31) + b"trailing"),
        ("gzip", zlib.compress(TEXT)),
        ("deflate", b"\xff\xff\xff\xff"),
        ("deflate", zlib.compress(TEXT) + b"x"),
    ],
)
def test_what_is_no_such_body_is_never_complete(coding: str, data: bytes) -> None:
    with pytest.raises(Truncated):
        decoded(coding, data)


def test_what_stands_before_a_fault_is_given_first() -> None:
    decoder = ContentDecoder("gzip", LARGE)
    assert decoder.feed(zlib.compress(TEXT, wbits=31) + b"trailing") == TEXT
    assert decoder.pending and not decoder.complete
    for _ in range(2):
        with pytest.raises(Truncated):
            decoder.feed()


def test_nothing_is_a_complete_body() -> None:
    assert decoded("gzip") == decoded("gzip", b"") == b""


@sample()
@pytest.mark.parametrize("way", ["gzip", "deflate", "raw deflate"])
@pytest.mark.parametrize("size", [1, 1000, 2**20])
def test_a_bomb_is_refused_before_it_fills_the_memory(way: str, size: int) -> None:
    coding, pack = WAYS[way]
    packed = pack(b"\0" * 2**26)
    assert len(packed) < 2**17
    decoder = ContentDecoder(coding, LARGE)
    given = 0
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            for start in range(0, len(packed), size):
                for piece in fed(decoder, packed[start : start + size]):
                    given += len(piece)
        assert given <= FREE + RATIO * len(packed)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_members_without_end_are_refused() -> None:
    """Each is small; together they are a bomb."""
    member = zlib.compress(b"\0" * 100_000, wbits=31)
    with pytest.raises(TooLarge):
        decoded("gzip", member * 100)


def test_the_work_for_members_grows_with_their_number_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as the bytes of a rest that the decompressor copies for each member."""
    copied: list[int] = []

    class Counting:
        def __init__(self, bits: int) -> None:
            self.machine = make(bits)
            self.unconsumed_tail = b""

        def decompress(self, data: bytes, room: int) -> bytes:
            found: bytes = self.machine.decompress(data, room)
            self.eof, self.unused_data = self.machine.eof, self.machine.unused_data
            copied.append(len(self.unused_data))
            return found

    make = zlib.decompressobj
    monkeypatch.setattr("gateway.server.upstream.http1.content_coding.zlib.decompressobj", Counting)
    member = zlib.compress(b"", wbits=31)
    work: list[float] = []
    for count in (2000, 8000):
        copied.clear()
        decoder = ContentDecoder("gzip", LARGE)
        assert decoder.feed(member * count) == b"" and decoder.complete
        assert len(copied) >= count
        work.append(sum(copied) / count)
    assert work[1] <= 1.1 * work[0]


def test_a_full_piece_that_ends_with_its_input_gives_all_of_it() -> None:
    """The decompressor may hold bytes for which there was no room, with nothing left to read."""
    for size in range(3 * PIECE - 2, 3 * PIECE + 3):
        data = random.Random(size).randbytes(size)
        for level in (0, 9):
            assert decoded("gzip", zlib.compress(data, level, wbits=31)) == data
        assert decoded("gzip", zlib.compress(b"x" * size, wbits=31)) == b"x" * size


def test_an_answer_that_is_compressed_well_is_no_bomb() -> None:
    chunks = b"".join(TEXT.replace(b"Hello", b"word %d" % number) for number in range(10_000))
    packed = zlib.compress(chunks, 9, wbits=31)
    assert len(chunks) > 2 * FREE and len(chunks) > 20 * len(packed)
    assert decoded("gzip", packed) == chunks


@pytest.mark.parametrize("most", [0, 1, len(TEXT) - 1])
def test_more_than_is_allowed_is_too_large(most: int) -> None:
    with pytest.raises(TooLarge):
        decoded("gzip", zlib.compress(TEXT, wbits=31), most=most)
    assert decoded("gzip", zlib.compress(TEXT, wbits=31), most=len(TEXT)) == TEXT


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", ""])
def test_other_codings_cannot_be_read(coding: str) -> None:
    with pytest.raises(KeyError):
        ContentDecoder(coding, LARGE)
