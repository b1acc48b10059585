"""Decodes responses from bytes with any cut: the accepted ones, their ends, and the rejected ones."""

import pytest

from gateway.server.upstream.http.errors import HttpError, HttpProtocolError, RemoteDisconnected, TooLarge, Truncated
from gateway.server.upstream.http.headers import MAX_HEAD, MAX_HEADERS
from gateway.server.upstream.http1.response_decoder import ResponseDecoder

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
LENGTH = OK + b"content-length: 3\r\n\r\n"


def asked(most: int = 1000) -> ResponseDecoder:
    decoder = ResponseDecoder()
    decoder.begin(most)
    return decoder


def feed(decoder: ResponseDecoder, wire: bytes, step: int) -> None:
    for start in range(0, len(wire), step):
        decoder.feed(wire[start : start + step])


@pytest.mark.parametrize("step", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    ("wire", "body", "reusable"),
    [
        (LENGTH + b"abc", b"abc", True),
        (CHUNKED + b"1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", b"abc", True),
        (CHUNKED + b"3\r\nabc\r\n0\r\nx-trailer: y\r\n\r\n", b"abc", True),
        (OK + b"connection: close\r\ncontent-length: 3\r\n\r\nabc", b"abc", False),
        (OK + b"Connection: keep-alive, Close\r\ncontent-length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\nabc", b"abc", True),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b"", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + LENGTH + b"abc", b"abc", True),
        (LENGTH + b"abc\r\n", b"abc", True),
        # Bytes behind the end: the beginning of another answer, or of nothing at all.
        (LENGTH + b"abcH", b"abc", False),
        (LENGTH + b"abc" + LENGTH + b"xyz", b"abc", False),
        (LENGTH + b"abcwhat", b"abc", False),
        (OK + b"connection: close\r\ncontent-length: 3\r\n\r\nabcmore", b"abc", False),
    ],
)
def test_an_answer_is_read(wire: bytes, body: bytes, reusable: bool, step: int) -> None:
    decoder = asked()
    feed(decoder, wire, step)
    assert decoder.ended and decoder.status
    assert (decoder.read(), decoder.reusable) == (body, reusable)
    assert not decoder.headers.keys() & {"link", "x-trailer"}


def test_the_head_is_there_before_the_body() -> None:
    decoder = asked()
    decoder.feed(OK + b"X-One: a\r\nx-ONE: caf\xe9\r\nEmpty:\r\ncontent-length: 3\r\n")
    assert (decoder.status, decoder.begun) == (0, True)
    decoder.feed(b"\r\na")
    assert (decoder.status, decoder.ended, decoder.waiting) == (200, False, 1)
    assert decoder.headers == {"x-one": "a, caf\xe9", "empty": "", "content-length": "3"}
    assert (decoder.read(), decoder.waiting, decoder.read()) == (b"a", 0, b"")


def test_one_answer_after_the_other() -> None:
    decoder = asked()
    for _ in range(3):
        decoder.begin(1000)
        assert not decoder.begun
        decoder.feed(LENGTH + b"abc")
        assert (decoder.status, decoder.reusable, decoder.read()) == (200, True, b"abc")


@pytest.mark.parametrize("step", [1, 64, 10_000_000])
@pytest.mark.parametrize(
    "wire",
    [
        b"what is this\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 000 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\ncontent-length: 0\n\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxyz",
        OK + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n",
        OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
        OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\n",
        OK + b"content-length: 3, 4\r\n\r\n",
        OK + b"content-length: -3\r\n\r\n",
        OK + b"content-length: 99999999999999999999\r\n\r\n",
        OK + b"transfer-encoding: gzip\r\n\r\n",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
        OK + b"a : b\r\n\r\n",
        OK + b"a: b\r\n folded\r\n\r\n",
        OK + b"a: \0\r\n\r\n",
        OK + b"a: b\nc: d\r\n\r\n",
        # Heads without an end: a status line, a header, many headers, words in between.
        b"HTTP/1.1 200 " + b"O" * (2 * MAX_HEAD),
        OK + b"x: " + b"y" * (2 * MAX_HEAD),
        OK + b"y" * (2 * MAX_HEAD),
        OK + b"x: " + b"y" * (2 * MAX_HEAD) + b"\r\n\r\n",
        OK + b"".join(b"x%d: y\r\n" % number for number in range(MAX_HEADERS + 1)) + b"\r\n",
        OK + b"x: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        OK + b"x: yyyyyyyyyyyyy\r\n" * (MAX_HEAD // 10),
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD // 20),
    ],
)
def test_what_is_no_head_is_refused(wire: bytes, step: int) -> None:
    decoder = asked()
    with pytest.raises(HttpProtocolError):
        feed(decoder, wire, step)
    assert not (decoder.status or decoder.reusable)


@pytest.mark.parametrize("step", [1, 64, 10_000_000])
@pytest.mark.parametrize(
    "wire",
    [
        b"zz\r\n",
        b"3\r\nabcd",
        b"-1\r\n",
        b"fffffffffffffffff\r\n",
        b"3\nabc\n",
        # A chunk's extension, a trailer, many trailers.
        b"3;" + b"x" * (2 * MAX_HEAD),
        b"0\r\nx: " + b"y" * (2 * MAX_HEAD),
        b"0\r\n" + b"x: yyyyyyyyyyyyy\r\n" * (MAX_HEAD // 10),
    ],
)
def test_broken_framing_is_told_and_the_rest_is_kept(wire: bytes, step: int) -> None:
    decoder = asked()
    decoder.feed(CHUNKED + b"2\r\nok\r\n")
    with pytest.raises(Truncated):
        feed(decoder, wire, step)
    assert decoder.read().startswith(b"ok")
    assert not (decoder.ended or decoder.reusable)


@pytest.mark.parametrize(
    ("wire", "fault"),
    [
        (b"", RemoteDisconnected),
        (OK, RemoteDisconnected),
        (b"HTTP/1.1 100 Continue\r\n\r\n", RemoteDisconnected),
        (LENGTH + b"ab", Truncated),
        (CHUNKED, Truncated),
        (CHUNKED + b"3\r\nabc\r\n0\r\n", Truncated),
    ],
)
def test_an_end_that_comes_too_early_is_told(wire: bytes, fault: type[HttpError]) -> None:
    decoder = asked()
    if wire:
        decoder.feed(wire)
    with pytest.raises(fault):
        decoder.close()
    assert not decoder.ended


def test_a_body_without_a_length_lasts_as_long_as_the_connection() -> None:
    decoder = asked()
    decoder.feed(OK + b"\r\nab")
    assert not decoder.ended
    decoder.feed(b"c")
    decoder.close()
    assert (decoder.ended, decoder.reusable, decoder.read()) == (True, False, b"abc")
    reset = asked()
    reset.feed(OK + b"\r\nabc")
    with pytest.raises(Truncated):
        reset.close(clean=False)


@pytest.mark.parametrize("step", [1, 1000])
@pytest.mark.parametrize(
    "wire", [OK + b"\r\nabcdef", OK + b"content-length: 6\r\n\r\nabcdef", CHUNKED + b"6\r\nabcdef"]
)
def test_no_more_than_allowed_is_kept(wire: bytes, step: int) -> None:
    decoder = asked(most=5)
    with pytest.raises(TooLarge):
        feed(decoder, wire, step)
    assert len(decoder.read()) <= 5


@pytest.mark.parametrize("step", [1, 2, 1000])
def test_what_is_allowed_of_it_is_kept_however_it_was_cut(step: int) -> None:
    decoder = asked(most=5)
    with pytest.raises(TooLarge):
        feed(decoder, CHUNKED + b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", step)
    assert (decoder.read(), decoder.ended, decoder.reusable) == (b"abcde", False, False)
