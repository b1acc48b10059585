"""Tests on real sockets how long connections of HTTP/2 are kept."""

import asyncio

import pytest

from gateway.server.upstream.http2 import multiplexer, pool
from tests.server.upstream.http2.peer import Peer, answers, talking


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
