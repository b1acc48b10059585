"""Tests on real sockets the requests over HTTP/2, their responses, the shared connections, and the error of each
fault."""

import asyncio
import errno
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingAckReceived, PingReceived, RequestReceived, StreamReset, WindowUpdated
from h2.settings import SettingCodes

from gateway.core.errors import BackendError, BackendTruncated
from gateway.server.upstream.http import connect
from gateway.server.upstream.http2 import connection, multiplexer, pool
from gateway.server.upstream.http2.stream_response import WINDOW
from gateway.server.upstream.transport import Transport, encode_http2_head
from tests.server.api.test_keep_alive import comes_true
from tests.server.upstream.http2.peer import (
    HEAD,
    Fields,
    Peer,
    Script,
    answers,
    asking,
    frame,
    serving,
    talking,
)
from tests.server.upstream.transport_client import BODY, TransportClient, everything

CERTIFICATE: Final = Path(__file__).parent.parent / "http1" / "localhost.pem"
GOAWAY: Final = 7


async def test_the_request_and_its_answer() -> None:
    async with talking(answers) as (client, peers):
        given = await client.send(headers={"Content-Type": "text/plain", "host": "other", "connection": "close"})
        assert (given.status, given.headers) == (200, {"content-type": "application/grpc"})
        assert (await everything(given), given.trailers, given.ended) == (b"abc", {"grpc-status": "0"}, True)
        given.close()
    ((stream, fields),) = peers[0].heads.items()
    assert (stream, peers[0].requests[stream]) == (1, BODY)
    agent = fields[b"user-agent"]
    assert agent.startswith(b"dragoman/")
    assert fields == {
        b":method": b"POST",
        b":scheme": b"http",
        b":authority": b"other",
        b":path": b"/path",
        b"user-agent": agent,
        b"content-type": b"text/plain",
        b"te": b"trailers",
    }


async def test_a_head_may_be_the_whole_answer_and_interim_heads_come_before_it() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        for _ in range(3):
            peer.begin(stream, ((":status", "103"), ("link", "x")))
        peer.end(stream, (*HEAD, ("grpc-status", "8"), ("x-twice", "a"), ("x-twice", "b")))

    async with talking(script) as (client, _):
        given = await client.send()
        assert (given.status, given.headers["grpc-status"], given.headers["x-twice"]) == (200, "8", "a, b")
        assert (await given.read(), given.ended, given.trailers) == (b"", True, {})
        given.close()


@pytest.mark.parametrize("padding", [0, 200])
async def test_a_body_comes_piece_by_piece(padding: int) -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        for number in range(2000):
            while peer.state.local_flow_control_window(stream) < 300:
                await peer.next(WindowUpdated)
            peer.state.send_data(stream, b"%05d" % number, pad_length=padding)
            peer.flush()
        peer.end(stream)

    async with talking(script) as (client, _), asyncio.timeout(20):
        assert await client.ask() == b"".join(b"%05d" % number for number in range(2000))


async def test_requests_share_a_connection_and_their_answers_stay_apart() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        streams = [await peer.request() for _ in range(50)]
        for stream in reversed(streams):
            peer.begin(stream)
        for stream in streams:
            peer.data(stream, peer.requests[stream])
        for stream in reversed(streams):
            peer.end(stream)

    async with talking(script) as (client, peers), asyncio.timeout(20):
        asked = [b"%d" % number for number in range(50)]
        assert await asyncio.gather(*map(client.ask, asked)) == asked
        assert (len(peers), client.tries) == (1, 50)


@pytest.mark.parametrize(("allowed", "connections"), [(10, 3), (None, 1)])
async def test_another_connection_is_opened_where_the_backend_allows_no_more_streams(
    allowed: int | None, connections: int
) -> None:
    release = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.greet({} if allowed is None else {SettingCodes.MAX_CONCURRENT_STREAMS: allowed})
        streams: list[int] = []
        while len(streams) < (allowed or 30):
            streams.append(await peer.request())
            peer.begin(streams[-1])
        await release.wait()
        for stream in streams:
            peer.end(stream)

    async with talking(script) as (client, peers), asyncio.timeout(20):
        given = await asyncio.gather(*(client.send() for _ in range(30)))
        release.set()
        for one in given:
            await everything(one)
            one.close()
        assert (len(peers), client.tries) == (connections, 30)


async def test_a_limit_that_shrinks_later_holds_for_later_requests() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        if peer.number == 0:
            peer.state.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
        peer.begin(stream)
        await peer.request()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        first = await client.send()
        second = await client.send()
        assert len(peers) == 2
        first.close()
        second.close()


async def test_a_backend_that_allows_no_stream_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        peer.greet({SettingCodes.MAX_CONCURRENT_STREAMS: 0})
        assert await peer.closed()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries, len(peers)) == ("upstream_overloaded", 2, 2)


async def test_a_reader_that_is_slow_pauses_its_own_stream_alone() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        peer.greet()
        slow = await peer.request()
        peer.begin(slow)
        while room := min(peer.state.local_flow_control_window(slow), 2**14):
            peer.data(slow, b"x" * room)
            sent += room
        fast = await peer.request()
        peer.begin(fast)
        for _ in range(200):
            while peer.state.local_flow_control_window(fast) < 2**14:
                await peer.next(WindowUpdated)
            peer.data(fast, b"y" * 2**14)
        peer.end(fast)
        await peer.next(WindowUpdated)
        peer.end(slow)

    async with talking(script) as (client, peers), asyncio.timeout(20):
        slow = await client.send()
        assert await client.ask() == b"y" * 200 * 2**14
        assert sent == WINDOW
        assert await everything(slow) == b"x" * WINDOW
        slow.close()
        assert len(peers) == 1


async def test_a_large_request_waits_for_the_window_and_hinders_no_other() -> None:
    large = bytes(range(256)) * 2**13

    async def script(peer: Peer) -> None:
        peer.acknowledges = False
        peer.greet()
        first = (await peer.next(RequestReceived)).stream_id
        small = await peer.request()
        assert peer.requests[small] == b"small"
        peer.answer(small)
        peer.acknowledges = True
        # A larger window for all streams, and one for the connection.
        peer.state.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2**20})
        peer.state.increment_flow_control_window(2**24)
        peer.flush()
        assert await peer.request() == first
        peer.answer(first, str(peer.requests[first] == large).encode())

    async with talking(script) as (client, peers), asyncio.timeout(20):
        uploaded = asyncio.create_task(client.ask(large))
        await asyncio.sleep(0.05)
        # The first request has used up the window of the connection, so the backend widens that first.
        peers[0].state.increment_flow_control_window(1000)
        peers[0].flush()
        assert await client.ask(b"small") == b"abc"
        assert await uploaded == b"True"
        assert len(peers) == 1


async def test_an_answer_before_the_end_of_the_request_ends_it() -> None:
    async def script(peer: Peer) -> None:
        peer.acknowledges = False
        peer.greet()
        stream = (await peer.next(RequestReceived)).stream_id
        peer.end(stream, ((":status", "413"),))
        assert (await peer.next(StreamReset)).stream_id == stream
        peer.answer(await peer.request())

    async with talking(script) as (client, peers), asyncio.timeout(10):
        given = await client.send(b"x" * 2**20)
        assert (given.status, given.ended) == (413, True)
        given.close()
        assert (await client.ask(b""), len(peers)) == (b"abc", 1)


PHASES: Final = ("sending", "waiting for the head", "in the body", "behind a complete read")


@pytest.mark.parametrize("phase", PHASES)
async def test_a_request_that_is_given_up_is_cancelled_and_the_connection_stays(phase: str) -> None:
    arrived = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.acknowledges = phase != "sending"
        peer.greet()
        stream = (await peer.next(RequestReceived)).stream_id
        if phase not in PHASES[:2]:
            peer.begin(stream)
            peer.data(stream, b"abc")
        arrived.set()
        reset = await peer.next(StreamReset)
        assert (reset.stream_id, reset.error_code) == (stream, ErrorCodes.CANCEL)
        # What was under way when the reset came.
        peer.raw(frame(0, stream, b"late"))
        if phase == "sending":
            peer.state.increment_flow_control_window(2**20)
        peer.acknowledges = True
        peer.answer(await peer.request())

    async def ask(client: TransportClient) -> None:
        given = await client.send(b"x" * 2**20 if phase == "sending" else BODY)
        try:
            assert await given.read() == b"abc"
            if phase == "in the body":
                await given.read()
        finally:
            given.close()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        asked = asyncio.create_task(ask(client))
        await arrived.wait()
        if phase != PHASES[-1]:
            await asyncio.sleep(0.05)
            asked.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled() == (phase != PHASES[-1])
        assert (await client.ask(), len(peers)) == (b"abc", 1)


async def test_a_request_that_is_given_up_while_a_connection_opens_leaves_it_to_the_others() -> None:
    greeted = asyncio.Event()

    async def script(peer: Peer) -> None:
        await greeted.wait()
        await answers(peer)

    async with talking(script) as (client, peers), asyncio.timeout(10):
        one, two = asyncio.create_task(client.ask()), asyncio.create_task(client.ask())
        assert await comes_true(lambda: bool(peers))
        one.cancel()
        await asyncio.wait([one])
        greeted.set()
        assert (await two, len(peers)) == (b"abc", 1)


async def test_a_connection_that_nobody_waits_for_is_given_up() -> None:
    async def script(peer: Peer) -> None:
        closed.set_result(await peer.closed())

    closed = asyncio.get_running_loop().create_future()
    async with talking(script) as (client, peers), asyncio.timeout(10):
        asked = asyncio.create_task(client.ask())
        assert await comes_true(lambda: bool(peers))
        asked.cancel()
        assert await closed


async def test_a_backend_that_says_nothing_is_not_waited_for() -> None:
    async def script(peer: Peer) -> None:
        assert await peer.closed()

    async with talking(script) as (client, _), asyncio.timeout(10):
        with pytest.raises(BackendError) as caught:
            await client.send(connect=0.1)
        assert (caught.value.code, client.tries) == ("upstream_connection_error", 1)
        assert "timeouts.connect" in caught.value.message


def resets(code: ErrorCodes, begun: bool = False) -> Script:
    async def script(peer: Peer) -> None:
        peer.greet()
        while True:
            stream = await peer.request()
            if begun:
                peer.begin(stream)
            peer.reset(stream, code)

    return script


def goes_away(code: ErrorCodes) -> Script:
    """A backend that excludes the request."""

    async def script(peer: Peer) -> None:
        peer.greet()
        await peer.request()
        peer.raw(frame(GOAWAY, payload=bytes(4) + code.to_bytes(4, "big")))
        await peer.closed()

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


async def test_a_backend_that_goes_away_completes_what_it_has_begun() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        if peer.number:
            peer.answer(stream)
            await peer.closed()
            return
        peer.begin(stream)
        for last in (2**31 - 1, stream):
            peer.raw(frame(GOAWAY, payload=last.to_bytes(4, "big") + bytes(4)))
        await asyncio.sleep(0.05)
        peer.data(stream, b"abc")
        peer.end(stream)
        ended.set_result(await peer.closed())

    ended = asyncio.get_running_loop().create_future()
    async with talking(script) as (client, peers), asyncio.timeout(10):
        given = await client.send()
        await asyncio.sleep(0.02)
        # Further requests take another connection.
        assert (await client.ask(), len(peers)) == (b"abc", 2)
        assert await everything(given) == b"abc"
        given.close()
        assert await ended


async def refuses_once(peer: Peer) -> None:
    peer.greet()
    peer.reset(await peer.request(), ErrorCodes.REFUSED_STREAM)
    peer.answer(await peer.request())


async def goes_away_once(peer: Peer) -> None:
    await (answers(peer) if peer.number else goes_away(ErrorCodes.NO_ERROR)(peer))


@pytest.mark.parametrize(("script", "connections"), [(refuses_once, 1), (goes_away_once, 2)])
async def test_a_request_that_was_not_begun_is_tried_once_more(script: Script, connections: int) -> None:
    async with talking(script) as (client, peers), asyncio.timeout(10):
        assert await client.ask() == b"abc"
        assert (client.tries, len(peers)) == (2, connections)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_lost_connection_ends_every_stream(begun: bool) -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        streams = [await peer.request() for _ in range(3)]
        for stream in streams if begun else ():
            peer.begin(stream)
        await asyncio.sleep(0.05)
        peer.writer.transport.abort()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        results = await asyncio.gather(*(client.ask() for _ in range(3)), return_exceptions=True)
        code = "upstream_stream_truncated" if begun else "upstream_connection_error"
        assert [error.code for error in results if isinstance(error, BackendError)] == [code] * 3
        assert (client.tries, len(peers)) == (3, 1)


async def test_a_request_that_was_not_sent_in_full_is_tried_again() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        if peer.number == 0:
            peer.answer(await peer.request())
            await peer.next(DataReceived)
            peer.writer.transport.abort()
        else:
            await answers(peer)

    async with talking(script) as (client, peers), asyncio.timeout(20):
        assert await client.ask() == b"abc"
        assert await client.ask(b"x" * 2**22) == b"abc"
        assert (client.tries, len(peers)) == (3, 2)


async def test_a_connection_that_closes_before_it_is_open_is_tried_again() -> None:
    async def script(peer: Peer) -> None:
        if peer.number == 0:
            peer.writer.close()
        else:
            await answers(peer)

    async with talking(script) as (client, peers), asyncio.timeout(10):
        assert await client.ask() == b"abc"
        assert (client.tries, len(peers)) == (2, 2)


@pytest.mark.parametrize(("heard", "connections"), [(False, 2), (True, 1)])
async def test_a_connection_that_is_silent_for_long_takes_no_further_request(
    heard: bool, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENT_S", 0.05)

    async def script(peer: Peer) -> None:
        peer.greet()
        if peer.number == 0:
            peer.answer(await peer.request())
            await peer.request()
            if heard:
                await asyncio.sleep(0.05)
                peer.state.ping(b"8 bytes.")
                peer.flush()
        peer.answer(await peer.request())
        await peer.closed()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        # Nothing of the opening is still under way after an answer.
        assert await client.ask() == b"abc"
        silent = asyncio.create_task(client.ask())
        await asyncio.sleep(0.3)
        silent.cancel()
        await asyncio.wait([silent])
        assert (await client.ask(), len(peers)) == (b"abc", connections)


async def test_pings_are_answered() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        for _ in range(3):
            peer.state.ping(b"8 bytes.")
            peer.flush()
            assert (await peer.next(PingAckReceived)).ping_data == b"8 bytes."
        peer.end(stream)

    async with talking(script) as (client, _), asyncio.timeout(10):
        assert await client.ask() == b""


async def test_a_silent_backend_that_answers_pings_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PING_ANSWER_S", 0.5)

    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        for _ in range(3):
            await peer.next(PingReceived)
        peer.end(stream)

    async with talking(script) as (client, peers), asyncio.timeout(20):
        given = await client.send(ping=0.55)
        assert (await everything(given), len(peers)) == (b"", 1)
        given.close()


@pytest.mark.parametrize("begun", [False, True])
async def test_a_backend_that_answers_no_ping_is_unreachable(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PING_ANSWER_S", 0.1)
    ended = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.greet()
        stream = await peer.request()
        if begun:
            peer.begin(stream)
        await ended.wait()

    async with talking(script) as (client, _), asyncio.timeout(20):
        with pytest.raises(BackendError) as caught:
            await everything(await client.send(ping=0.05, again=False))
        assert caught.value.code == ("upstream_stream_truncated" if begun else "upstream_connection_error")
        ended.set()


async def test_nothing_is_asked_while_bytes_arrive_or_no_request_runs() -> None:
    pings = 0

    async def script(peer: Peer) -> None:
        nonlocal pings
        peer.greet()
        stream = await peer.request()
        peer.begin(stream)
        for _ in range(10):
            peer.data(stream, b"x")
            await asyncio.sleep(0.02)
        peer.end(stream)
        while True:
            await peer.next(PingReceived)
            pings += 1

    async with talking(script) as (client, _), asyncio.timeout(20):
        given = await client.send(ping=1)
        assert await everything(given) == b"x" * 10
        given.close()
        await asyncio.sleep(1.2)
        assert pings == 0


async def test_an_idle_connection_is_kept_for_a_while_and_then_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEEP_S", 0.1)
    monkeypatch.setattr(pool, "TICK_S", 0.02)

    async def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(2):
            peer.answer(await peer.request())
        closed.set_result(await peer.closed())

    closed = asyncio.get_running_loop().create_future()
    async with talking(script) as (client, peers), asyncio.timeout(10):
        for _ in range(2):
            await client.ask()
        assert len(peers) == 1
        assert await closed


async def test_the_end_of_an_idle_connection_is_seen_before_the_loop_sees_it() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        peer.answer(await peer.request())
        peer.writer.close()

    async with talking(script) as (client, peers), asyncio.timeout(20):
        for _ in range(50):
            assert await client.ask() == b"abc"
        assert client.tries == len(peers) == 50


async def test_a_connection_serves_so_many_requests_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplexer, "MAX_REQUESTS", 3)
    async with talking(answers) as (client, peers), asyncio.timeout(10):
        for _ in range(7):
            assert await client.ask() == b"abc"
        assert [len(peer.requests) for peer in peers] == [3, 3, 1]


async def test_nothing_is_left_when_the_transport_ends() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        peer.begin(await peer.request())
        await peer.closed()

    async with serving(script) as (port, _):
        async with asking(f"http://127.0.0.1:{port}") as client:
            given = await client.send()
            waiting = asyncio.create_task(given.read())
            await asyncio.sleep(0.01)
        with pytest.raises(BackendTruncated):
            await waiting
        given.close()


async def test_a_transport_that_ends_while_a_connection_opens_gives_it_up() -> None:
    async def script(peer: Peer) -> None:
        await peer.closed()

    async with serving(script) as (port, peers), asyncio.timeout(10):
        async with asking(f"http://127.0.0.1:{port}") as client:
            asked = asyncio.create_task(client.send(connect=60, again=False))
            assert await comes_true(lambda: bool(peers))
        with pytest.raises(BackendError):
            await asked


async def test_a_lack_of_descriptors_is_told_as_such() -> None:
    async with serving(answers) as (port, _), Transport(2**30, 0) as transport:
        with pytest.raises(BackendError) as caught:
            await TransportClient(transport, f"http://127.0.0.1:{port}", encode_http2_head).send()
    assert isinstance(caught.value.__cause__, OSError) and caught.value.__cause__.errno == errno.EMFILE


def contexts(alpn: list[str]) -> tuple[ssl.SSLContext, Callable[[str], ssl.SSLContext]]:
    """The backend's side of TLS, and the gateway's, which trusts the certificate of the test."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(CERTIFICATE)
    server.set_alpn_protocols(alpn)

    def context(wanted: str) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=CERTIFICATE)
        made.set_alpn_protocols([wanted])
        return made

    return server, context


async def test_tls_negotiates_http2(monkeypatch: pytest.MonkeyPatch) -> None:
    server, context = contexts(["http/1.1", "h2"])
    monkeypatch.setattr(connect, "tls_context", context)
    async with serving(answers, server) as (port, _), asking(f"https://localhost:{port}") as client:
        assert await client.ask() == b"abc"


async def test_a_backend_without_http2_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    server, context = contexts(["http/1.1"])
    monkeypatch.setattr(connect, "tls_context", context)
    async with serving(answers, server) as (port, _), asking(f"https://localhost:{port}") as client:
        with pytest.raises(BackendError) as caught:
            await client.ask()
        assert (caught.value.code, client.tries) == ("upstream_protocol_error", 1)
        assert caught.value.message == "The backend does not speak HTTP/2."
