"""Tests on real sockets how long a silent connection is believed to be alive."""

import asyncio

import pytest
from h2.events import PingAckReceived, PingReceived

from gateway.core.errors import BackendError
from gateway.server.upstream.http2 import connection
from tests.server.upstream.http2.peer import Peer, talking
from tests.server.upstream.transport_client import everything


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
