"""Tests what many streams over HTTP/2 cost: connections, time and memory."""

import asyncio
import gc
import sys
from typing import Final

import pytest
from h2.events import RequestReceived

from gateway.server.upstream.http2.connection import Http2Stream
from gateway.server.upstream.http2.stream_response import StreamResponse
from tests.server.upstream.http2.peer import Peer, talking
from tests.server.upstream.transport_client import TransportClient

STREAMS: Final = 1000
CANCELS: Final = 10_000
TOGETHER: Final = 50


@pytest.mark.full
async def test_a_thousand_streams_take_ten_connections() -> None:
    everyone = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.greet()
        streams: list[int] = []
        while len(streams) < 100:
            streams.append(await peer.request())
            peer.begin(streams[-1])
        await everyone.wait()
        for stream in streams:
            peer.data(stream, peer.requests[stream])
            peer.end(stream)

    async def ask(client: TransportClient, number: int) -> None:
        given = await client.send(b"%d" % number)
        begun.append(number)
        if len(begun) == STREAMS:
            everyone.set()
        assert await given.read() == b"%d" % number
        assert (await given.read(), given.trailers) == (b"", {"grpc-status": "0"})
        given.close()

    begun: list[int] = []
    async with talking(script) as (client, peers), asyncio.timeout(60):
        await asyncio.gather(*(ask(client, number) for number in range(STREAMS)))
        assert (len(peers), client.tries) == (10, STREAMS)


@pytest.mark.full
async def test_cancelled_streams_leave_nothing() -> None:
    async def script(peer: Peer) -> None:
        peer.greet()
        while True:
            peer.begin((await peer.next(RequestReceived)).stream_id)
            peer.heads.clear()
            peer.requests.clear()

    async def cancel(client: TransportClient, count: int) -> None:
        for _ in range(count // TOGETHER):
            given = await asyncio.gather(*(client.send() for _ in range(TOGETHER)))
            for one in given:
                one.close()
        # Until its next turn the loop holds the last answers.
        await asyncio.sleep(0)

    async with talking(script) as (client, peers), asyncio.timeout(120):
        await cancel(client, CANCELS // 10)
        gc.collect()
        before = sys.getallocatedblocks()
        await cancel(client, CANCELS)
        gc.collect()
        # Both sides remember the number of each stream, until the connection has served its last request.
        assert sys.getallocatedblocks() - before < 5 * CANCELS
        assert len(peers) == 1
        assert not [one for one in gc.get_objects() if isinstance(one, Http2Stream | StreamResponse)]
