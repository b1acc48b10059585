"""Tests on real sockets the error of each fault of an HTTP/2 backend, before the head and in the body."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from h2.errors import ErrorCodes
from h2.events import StreamReset

from gateway.core.errors import BackendError, BackendTruncated
from tests.server.upstream.http2.peer import GOAWAY, HEAD, Fields, Peer, Script, frame, goes_away, talking
from tests.server.upstream.transport_client import everything


def resets(code: ErrorCodes, begun: bool = False) -> Script:
    async def script(peer: Peer) -> None:
        peer.greet()
        while True:
            stream = await peer.request()
            if begun:
                peer.begin(stream)
            peer.reset(stream, code)

    return script


def says(*frames: Callable[[int], bytes] | bytes, begun: bool = False) -> Script:
    """A backend that sends these bytes instead of a response, or in its body."""

    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        if begun:
            peer.begin(stream)
        for data in frames:
            peer.raw(data if isinstance(data, bytes) else data(stream))
        await peer.closed()

    return script


def heads(count: int, size: int = 1) -> Script:
    """A backend whose head has so many fields of this size."""

    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream, (*HEAD, *((f"x-{number}", "y" * size) for number in range(count))))
        await peer.closed()

    return script


# A literal header that no table keeps, x: y, and a head without an end.
FIELD: Final = b"\x00\x01x\x01y"


BEFORE: Final[Mapping[str, tuple[Script, str, int]]] = {
    "REFUSED_STREAM": (resets(ErrorCodes.REFUSED_STREAM), "upstream_overloaded", 2),
    "GOAWAY below the stream": (goes_away(ErrorCodes.NO_ERROR), "upstream_overloaded", 2),
    "INTERNAL_ERROR": (resets(ErrorCodes.INTERNAL_ERROR), "upstream_stream_truncated", 1),
    "CANCEL": (resets(ErrorCodes.CANCEL), "upstream_stream_truncated", 1),
    "NO_ERROR": (resets(ErrorCodes.NO_ERROR), "upstream_stream_truncated", 1),
    "ENHANCE_YOUR_CALM": (resets(ErrorCodes.ENHANCE_YOUR_CALM), "rate_limit_exceeded", 1),
    "GOAWAY with ENHANCE_YOUR_CALM": (goes_away(ErrorCodes.ENHANCE_YOUR_CALM), "rate_limit_exceeded", 1),
    "INADEQUATE_SECURITY": (resets(ErrorCodes.INADEQUATE_SECURITY), "upstream_tls_error", 1),
    "GOAWAY with INADEQUATE_SECURITY": (goes_away(ErrorCodes.INADEQUATE_SECURITY), "upstream_tls_error", 1),
    "HTTP/1.1": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "upstream_protocol_error", 1),
    "garbage": (says(b"what is this\r\n\r\n"), "upstream_protocol_error", 1),
    "a frame that is too large": (says((2**14 + 1).to_bytes(3, "big") + bytes(6)), "upstream_protocol_error", 1),
    "GOAWAY of four bytes": (says(frame(GOAWAY, payload=bytes(4))), "upstream_protocol_error", 1),
    "a body before the head": (says(lambda stream: frame(0, stream, b"abc")), "upstream_protocol_error", 1),
    "a window that overflows": (says(frame(8, payload=b"\x7f\xff\xff\xff") * 2), "upstream_protocol_error", 1),
    "a push": (says(lambda stream: frame(5, stream, bytes(4) + FIELD, 4)), "upstream_protocol_error", 1),
    "CONTINUATION without end": (
        says(lambda stream: frame(1, stream, FIELD) + frame(9, stream, FIELD) * 9),
        "upstream_protocol_error",
        1,
    ),
    "a head of too many fields": (heads(130), "upstream_protocol_error", 1),
    "a head that is too large": (heads(60, 1200), "upstream_protocol_error", 1),
}


@pytest.mark.parametrize("name", BEFORE)
async def test_faults_before_the_head(name: str) -> None:
    script, code, tries = BEFORE[name]
    async with talking(script) as (client, _), asyncio.timeout(10):
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == (code, tries)


WITHIN: Final[Mapping[str, tuple[Script, str]]] = {
    "RST_STREAM": (resets(ErrorCodes.INTERNAL_ERROR, begun=True), "upstream_stream_truncated"),
    "REFUSED_STREAM, too late": (resets(ErrorCodes.REFUSED_STREAM, begun=True), "upstream_stream_truncated"),
    "ENHANCE_YOUR_CALM": (resets(ErrorCodes.ENHANCE_YOUR_CALM, begun=True), "rate_limit_exceeded"),
    "GOAWAY below the stream": (
        says(frame(GOAWAY, payload=bytes(8)), begun=True),
        "upstream_overloaded",
    ),
    "garbage": (says(b"what is this\r\n\r\n", begun=True), "upstream_stream_truncated"),
    "DATA of a stream that does not exist": (
        says(lambda stream: frame(0, stream + 2, b"x"), begun=True),
        "upstream_stream_truncated",
    ),
    "DATA of a pushed stream": (says(frame(0, 2, b"x"), begun=True), "upstream_stream_truncated"),
    "padding that is too long": (
        says(lambda stream: frame(0, stream, b"\x09abc", 8), begun=True),
        "upstream_stream_truncated",
    ),
    "a flood of PING": (says(frame(6, payload=bytes(8)) * 1000, begun=True), "upstream_stream_truncated"),
    "a flood of SETTINGS": (says(frame(4) * 1000, begun=True), "upstream_stream_truncated"),
    "a flood of empty DATA": (says(lambda stream: frame(0, stream) * 1000, begun=True), "upstream_stream_truncated"),
    "a flood of RST_STREAM": (
        says(lambda stream: frame(3, stream + 2, bytes(4)) * 1000, begun=True),
        "upstream_stream_truncated",
    ),
    "a flood of unknown frames": (says(frame(99, payload=b"x") * 1000, begun=True), "upstream_stream_truncated"),
    "more than the window": (
        says(lambda stream: frame(0, stream, bytes(2**14)) * 5, begun=True),
        "upstream_stream_truncated",
    ),
    "two trailers": (
        says(lambda stream: frame(1, stream, FIELD, 4), begun=True),
        "upstream_stream_truncated",
    ),
}


@pytest.mark.parametrize("name", WITHIN)
async def test_faults_in_the_body(name: str) -> None:
    script, code = WITHIN[name]
    async with talking(script) as (client, _), asyncio.timeout(10):
        given = await client.send()
        with pytest.raises(BackendError) as caught:
            await everything(given)
        given.close()
        assert caught.value.code == code


@pytest.mark.parametrize("length", [2, 4])
@pytest.mark.parametrize("trailers", [True, False])
async def test_a_body_that_is_shorter_or_longer_than_it_says_makes_no_answer(length: int, trailers: bool) -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream, (*HEAD, ("content-length", str(length))))
        peer.raw(frame(0, stream, b"abc", 0 if trailers else 1))
        peer.raw(frame(1, stream, FIELD, 5) if trailers else b"")
        # The stream is over, and the connection is sound.
        peer.answer(await peer.request())

    async with talking(script) as (client, peers), asyncio.timeout(10):
        given = await client.send()
        with pytest.raises(BackendTruncated):
            await everything(given)
        given.close()
        assert (await client.ask(), len(peers)) == (b"abc", 1)


async def test_a_body_may_end_without_trailers() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        while True:
            stream = await peer.request()
            peer.begin(stream, (*HEAD, ("content-length", "3")))
            peer.state.send_data(stream, b"abc", end_stream=True)
            peer.flush()

    async with talking(script) as (client, peers), asyncio.timeout(20):
        for _ in range(150):
            given = await client.send()
            assert (await everything(given), given.trailers) == (b"abc", {})
            given.close()
        assert len(peers) == 1


@pytest.mark.parametrize("trailers", [[("x", "y" * 1000)] * 70, [("x", "y")] * 129])
async def test_trailers_that_are_too_large_make_no_answer(trailers: Fields) -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        peer.end(stream, trailers)
        await peer.closed()

    async with talking(script) as (client, _), asyncio.timeout(10):
        given = await client.send()
        with pytest.raises(BackendTruncated):
            await everything(given)
        given.close()


async def test_an_answer_that_is_too_large_is_cut_off_and_the_connection_stays() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        peer.data(stream, b"x" * 2000)
        assert (await peer.next(StreamReset)).error_code == ErrorCodes.CANCEL
        peer.answer(await peer.request())

    async with talking(script, most=1000) as (client, peers), asyncio.timeout(10):
        given = await client.send()
        assert await given.read() == b"x" * 1000
        with pytest.raises(BackendError) as caught:
            await given.read()
        assert caught.value.code == "upstream_response_too_large"
        given.close()
        assert (await client.ask(), len(peers)) == (b"abc", 1)


async def test_what_came_before_the_end_of_the_connection_is_read() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        peer.data(stream, b"abc")
        peer.raw(b"garbage without a frame")

    async with talking(script) as (client, _), asyncio.timeout(10):
        given = await client.send()
        await asyncio.sleep(0.05)
        assert await given.read() == b"abc"
        with pytest.raises(BackendTruncated):
            await given.read()
        given.close()
