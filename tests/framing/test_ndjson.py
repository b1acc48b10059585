import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendProtocolError
from gateway.framing.ndjson import NDJSONDecoder
from gateway.testing.replay import cut

MAX = 16
WIRES = [
    (b'{"a":1}\n', [b'{"a":1}'], None),
    (b'{"a":1}\r\n{"b":2}\n', [b'{"a":1}', b'{"b":2}'], None),
    (b"\n\n  \n1\n", [b"1"], None),
    (b"\xef\xbb\xbf1\n\xef\xbb\xbf2\n", [b"1", b"\xef\xbb\xbf2"], None),
    (b'"a"\n"b', [b'"a"'], b'"b'),
    (b"1\n \t", [b"1"], None),
    (b"1\r", [], b"1"),
    ('"\u2028\x85"\n'.encode(), ['"\u2028\x85"'.encode()], None),
    (b"", [], None),
    (b"x" * MAX + b"\r\n", [b"x" * MAX], None),
    (b"\xef\xbb\xbf" + b"x" * MAX + b"\r\n", [b"x" * MAX], None),
]


@pytest.mark.parametrize(("wire", "lines", "tail"), WIRES)
def test_a_stream_yields_its_lines_however_it_is_cut(wire: bytes, lines: list[bytes], tail: bytes | None) -> None:
    for cutting in ([wire], cut(wire, range(len(wire)))):
        decoder = NDJSONDecoder(MAX)
        assert [line for data in cutting for line in decoder.feed(data)] == lines
        assert decoder.tail() == tail


@pytest.mark.parametrize("wire", [b"x" * (MAX + 1) + b"\n", b"1\n" + b"x" * (MAX + 1) + b"\r\n", b"x" * (4 * MAX)])
def test_a_line_without_end_is_refused(wire: bytes) -> None:
    for cutting in ([wire], cut(wire, range(len(wire)))):
        decoder = NDJSONDecoder(MAX)
        with pytest.raises(BackendProtocolError) as caught:
            for data in cutting:
                decoder.feed(data)
            decoder.tail()
        assert caught.value.code == "upstream_event_too_large"


def test_whole_lines_come_before_one_that_is_too_large() -> None:
    decoder = NDJSONDecoder(MAX)
    assert decoder.feed(b"1\n2\n" + b"x" * (MAX + 1) + b"\n") == [b"1", b"2"]
    assert decoder.fault is not None
    for decode in (lambda: decoder.feed(b"3\n"), decoder.tail):
        with pytest.raises(BackendProtocolError):
            decode()


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b""))), st.sets(st.integers(0, 80)))
def test_cuts_change_nothing(lines: list[bytes], places: set[int]) -> None:
    wire = b"\n".join(lines)
    whole, pieces = NDJSONDecoder(MAX), NDJSONDecoder(MAX)
    expected = whole.feed(wire)
    assert [line for data in cut(wire, places) for line in pieces.feed(data)] == expected
    assert pieces.tail() == whole.tail()
