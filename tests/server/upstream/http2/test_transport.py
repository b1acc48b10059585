"""Tests on real sockets the requests over HTTP/2, their responses, and the shared connections."""

import asyncio
import errno
from typing import Final

import pytest
from h2.errors import ErrorCodes
from h2.events import RequestReceived, StreamReset, WindowUpdated
from h2.settings import SettingCodes

from gateway.core.errors import BackendError, BackendTruncated
from gateway.server.upstream.http2.stream_response import WINDOW
from gateway.server.upstream.transport import Transport, encode_http2_head
from tests.server.api.test_keep_alive import comes_true
from tests.server.upstream.http2.peer import HEAD, Peer, answers, asking, frame, serving, talking
from tests.server.upstream.transport_client import BODY, TransportClient, everything


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
        # The first request uses up the window of the connection, so the backend widens that first.
        assert await comes_true(lambda: bool(peers) and peers[0].state.inbound_flow_control_window == 0, 10)
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
            # The next request waits for this window, and may have begun in the same read as the reset.
            peer.flush()
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
