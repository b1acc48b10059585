import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendProtocolError
from gateway.framing.sse import SSEDecoder
from tests.fuzz.counted import count_work

MAX = 64

PLAIN = [
    (b"data: a\n\n", [b"a"]),
    (b"data:a\n\n", [b"a"]),
    (b"data:  a\n\n", [b" a"]),
    (b"data: a\ndata: b\n\n", [b"a\nb"]),
    (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    (b"data: a\r\n\r\n", [b"a"]),
    (b"data: a\r\r", [b"a"]),
    (b"data: a\n\r", [b"a"]),
    (b"data: a\r\n\n", [b"a"]),
    (b"data: a\r\ndata: b\r\r\n", [b"a\nb"]),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
    (b": comment\ndata: a\n\n", [b"a"]),
    (b": keep-alive\n\n\n\n", []),
    (b"event: error\nid: 7\nretry: 10\ndata: a\n\n", [b"a"]),
    (b"event: ping\n\n", []),
    (b"Data: a\ndatum: b\n\n", []),
    (b"data\n\n", [b""]),
    (b"data:\ndata:\n\n", [b"\n"]),
    (b"data: a:b: c\n\n", [b"a:b: c"]),
    ("data: a\u2028b\x85c\u0085d\x0be\n\n".encode(), ["a\u2028b\x85c\u0085d\x0be".encode()]),
    (b"data: \xff\xfe\x00\n\n", [b"\xff\xfe\x00"]),
]


@pytest.mark.parametrize(("wire", "events"), PLAIN)
def test_a_stream_yields_the_data_of_its_events(wire: bytes, events: list[bytes]) -> None:
    assert SSEDecoder(MAX).feed(wire) == events


@pytest.mark.parametrize(("wire", "events"), PLAIN)
def test_single_bytes_yield_the_same(wire: bytes, events: list[bytes]) -> None:
    assert _in_pieces(wire, range(len(wire)), MAX) == (events, None)


def test_a_byte_order_mark_may_be_cut_anywhere() -> None:
    wire = b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"
    assert [_in_pieces(wire, (cut,), MAX) for cut in range(len(wire))] == [([b"a", b"b"], None)] * len(wire)


@pytest.mark.parametrize(
    ("wire", "tail"),
    [
        (b"", None),
        (b"data: a\n\n", None),
        (b"data: a", b"a"),
        (b"data: a\n", b"a"),
        (b"data: a\ndata: b", b"a\nb"),
        (b"data: a\r", b"a"),
        (b": comment", None),
        (b"data", b""),
    ],
)
def test_the_tail_is_what_no_blank_line_closed(wire: bytes, tail: bytes | None) -> None:
    decoder = SSEDecoder(MAX)
    decoder.feed(wire)
    assert decoder.tail() == tail
    assert decoder.tail() is None


@pytest.mark.parametrize(
    "wire",
    [
        b"data: " + b"x" * MAX + b"\n\n",
        b"data:" + b"x" * MAX + b"\n\n",
        b"data: " + b"x" * (MAX - 2) + b"\ndata: y\n\n",
        (b"data: " + b"x" * MAX + b"\n\n") * 3,
        (b": " + b"x" * MAX + b"\n") * 3 + b"data: a\n\n",
        b": x\n" * 100 + b"data: a\n\n",
    ],
)
def test_an_event_may_be_as_large_as_the_limit(wire: bytes) -> None:
    assert SSEDecoder(MAX).feed(wire)
    assert _in_pieces(wire, range(len(wire)), MAX)[1] is None


@pytest.mark.parametrize(
    "wire",
    [
        b"data: " + b"x" * (MAX + 1) + b"\n\n",
        b"data: " + b"x" * (MAX + 1),
        b"data: " + b"x" * (MAX - 1) + b"\ndata: y\n\n",
        b"data\n" * (MAX + 2) + b"\n",
        b": " + b"x" * 2 * MAX,
        b"x" * 2 * MAX,
    ],
)
def test_one_byte_more_is_an_error_however_it_is_cut(wire: bytes) -> None:
    for cuts in (range(0), range(len(wire))):
        assert _in_pieces(wire, cuts, MAX)[1] == "upstream_event_too_large"


def test_the_tail_is_bounded_too() -> None:
    decoder = SSEDecoder(4)
    decoder.feed(b"data: abc\ndata: d")
    with pytest.raises(BackendProtocolError):
        decoder.tail()


class _Counted(bytes):
    """A piece of a wire that counts how many of its bytes are searched for line ends."""

    searched = 0

    def partition(self, sep: bytes) -> tuple[bytes, bytes, bytes]:  # type: ignore[override]  # bytes takes any buffer
        _Counted.searched += len(self)
        return super().partition(sep)


def test_a_large_event_in_small_pieces_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "searched", 0)
    decoder = SSEDecoder(1 << 20)
    pieces = [b"data: ", *([b"x" * 16] * (1 << 16)), b"\n\n"]
    events = [event for piece in pieces for event in decoder.feed(_Counted(piece))]
    assert [len(event) for event in events] == [1 << 20]
    # No byte of what is kept for the next piece is looked at again; the end of an event is not looked for at its begin.
    assert _Counted.searched == sum(map(len, pieces[1:]))


FRAGMENTS = st.sampled_from([b"data", b":", b" ", b"\n", b"\r", b"\r\n", b"a", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"id"])
WIRES = st.lists(FRAGMENTS, max_size=40).map(b"".join) | st.binary(max_size=80)


LEADS = st.sampled_from(
    [b"data: ", b"data:", b"event:data\ndata:", b"event: a\ndata: ", b"data:a\ndata:", b": x\ndata:"]
)
VALUES = st.sampled_from([b"", b"a", b" a", b"data:", b"\ndata: b", b"\n", b"\r\n", b"event:data\ndata:c"])
BLANKS = st.sampled_from([b"\n\n", b"\r\n\r\n"])
EVENTS = st.lists(
    st.builds(
        lambda lead, value, blank: lead.replace(b"\n", blank[: len(blank) // 2]) + value + blank, LEADS, VALUES, BLANKS
    ),
    min_size=1,
    max_size=3,
)


@given(EVENTS, st.integers(1, 4), EVENTS, st.sets(st.integers(0, 200), max_size=3))
def test_events_that_begin_alike_are_read_like_any(
    alike: list[bytes], times: int, others: list[bytes], cuts: set[int]
) -> None:
    wire = b"".join([*[event for event in alike for _ in range(times)], *others, *alike])
    assert _in_pieces(wire, sorted(cuts), 1 << 20) == (_definition(wire), None)


@given(WIRES, st.sets(st.integers(0, 200)))
def test_it_decodes_what_the_definition_says_at_any_cut(wire: bytes, cuts: set[int]) -> None:
    assert _in_pieces(wire, sorted(cuts), 1 << 20) == (_definition(wire), None)


@given(WIRES, st.sets(st.integers(0, 200)), st.integers(0, 12))
def test_the_limit_and_what_stands_before_it_do_not_depend_on_the_cuts(wire: bytes, cuts: set[int], limit: int) -> None:
    assert _in_pieces(wire, sorted(cuts), limit) == _in_pieces(wire, (), limit)


def test_whole_events_come_before_one_that_is_too_large() -> None:
    decoder = SSEDecoder(MAX)
    assert decoder.feed(b"data: a\n\ndata: b\n\ndata: " + b"x" * (MAX + 1)) == [b"a", b"b"]
    assert decoder.fault is not None
    for decode in (lambda: decoder.feed(b"data: c\n\n"), decoder.tail):
        with pytest.raises(BackendProtocolError):
            decode()


def _in_pieces(wire: bytes, cuts: "range | list[int] | tuple[int, ...]", limit: int) -> tuple[list[bytes], str | None]:
    """The events of a wire cut at these places, and the code of the error that ended it."""
    decoder = SSEDecoder(limit)
    bounds = [0, *(cut for cut in cuts if cut <= len(wire)), len(wire)]
    events: list[bytes] = []
    try:
        for start, end in itertools.pairwise(bounds):
            events += decoder.feed(wire[start:end])
    except BackendProtocolError as error:
        return events, error.code
    # The error behind the events of the last piece waits for the next call.
    return events, None if decoder.fault is None else decoder.fault.code


def _definition(wire: bytes) -> list[bytes]:
    """The slow and obvious reading of the specification: all lines at once."""
    events, data = [], b""
    for line in re.split(rb"\r\n|\n|\r", wire.removeprefix(b"\xef\xbb\xbf"))[:-1]:
        if line == b"":
            if data:
                events.append(data[:-1])
            data = b""
        elif match := re.fullmatch(rb"data(?:: ?(.*))?", line, re.DOTALL):
            data += (match[1] or b"") + b"\n"
    return events


def test_any_number_of_blank_lines_is_one_step() -> None:
    decoder = SSEDecoder(1 << 20)
    assert decoder.feed(b"data: a\n\n") == [b"a"]
    assert count_work(lambda: decoder.feed(b"\n" * 65536)).steps < 50
    assert decoder.feed(b"\n\n\ndata: b\n\n\n\ndata: c\n\n") == [b"b", b"c"]
