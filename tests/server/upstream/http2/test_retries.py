"""Tests on real sockets which requests are tried once more on another connection."""

import asyncio

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingAckReceived

from gateway.core.errors import BackendError
from gateway.server.upstream.http2 import connection
from tests.server.upstream.http2.peer import GOAWAY, Peer, Script, answers, frame, goes_away, talking
from tests.server.upstream.transport_client import everything


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
    pinged = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.greet()
        if peer.number == 0:
            peer.answer(await peer.request())
            await peer.request()
            if heard:
                await asyncio.sleep(0.05)
                peer.state.ping(b"8 bytes.")
                peer.flush()
                await peer.next(PingAckReceived)
                pinged.set()
        peer.answer(await peer.request())
        await peer.closed()

    async with talking(script) as (client, peers), asyncio.timeout(10):
        # Nothing of the opening is still under way after an answer.
        assert await client.ask() == b"abc"
        silent = asyncio.create_task(client.ask())
        await asyncio.sleep(0.3)
        if heard:
            # The sign of life counts only if it arrives before the request is given up.
            await pinged.wait()
        silent.cancel()
        await asyncio.wait([silent])
        assert (await client.ask(), len(peers)) == (b"abc", connections)
