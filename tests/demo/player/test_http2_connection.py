"""Tests with an HTTP/2 client what the demo's connection makes of streams, windows and clients that leave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from gateway.demo.serve import DemoBackend, serve_demo
from tests.demo.http2_client import Seen, asked, connected


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[DemoBackend]:
    async with serve_demo("grpc") as running:
        yield running


async def until(seen: Seen, holds: Callable[[Seen], bool]) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(5):
        while not holds(seen):
            await seen.changed.wait()
            seen.changed.clear()


async def arrived(seen: Seen, size: int) -> None:
    """Wait until the body has this many bytes."""
    await until(seen, lambda seen: len(seen.body) >= size)


async def test_the_streams_of_a_connection_are_independent(backend: DemoBackend) -> None:
    async with connected(backend) as client:
        stalled = client.ask(asked("Count to 3 [[demo:stall]]"))
        answers = await asyncio.gather(*[client.answer(f"Say: {number}") for number in range(50)])
        assert [answer.text for answer in answers] == [str(number) for number in range(50)]
        assert not stalled.ended


async def test_a_body_waits_for_the_window_of_its_stream(backend: DemoBackend) -> None:
    """The window that every stream begins with is 65,535 bytes, and so is that of the connection."""
    async with connected(backend, acknowledges=False) as client:
        client.state.increment_flow_control_window(2**20)
        client.flush()
        long = client.ask(asked("Count to 9 [[demo:huge_message mb=1 after=0]]"))
        await arrived(long, 65_535)
        assert (await client.answer("Count to 3")).text == "1, 2, 3"
        assert len(long.body) == 65_535
        client.state.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 200_000})
        client.flush()
        await arrived(long, 200_000)
        client.state.increment_flow_control_window(2**20, 1)
        client.state.increment_flow_control_window(2**20)
        client.flush()
        await until(long, lambda seen: seen.ended)
        assert len(long.messages) == 11 and len(long.messages[0].text) == 2**20


async def test_a_body_that_is_too_large_is_refused_before_its_end(
    backend: DemoBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.demo.player.endpoint._LARGEST_BODY", 100)
    async with connected(backend) as client:
        seen = client.ask(b"x" * 101, ends=False)
        await until(seen, lambda seen: seen.code is not None)
        assert (seen.head[":status"], seen.code) == ("413", ErrorCodes.NO_ERROR)
        assert (await client.answer("Count to 2")).text == "1, 2"


async def test_a_path_of_another_kind_has_a_status_of_http(backend: DemoBackend) -> None:
    async with connected(backend) as client:
        seen = client.ask(asked("Hello"), headers=(("content-type", "application/json"),))
        await until(seen, lambda seen: seen.ended)
        assert (seen.head[":status"], seen.body, seen.trailers) == ("415", b"", None)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_reset_by_the_client_ends_the_response(backend: DemoBackend, at_once: bool) -> None:
    async with connected(backend) as client:
        seen = client.ask(asked("Count to 3 [[demo:stall]]"))
        if not at_once:
            await arrived(seen, 1)
        client.state.reset_stream(1, ErrorCodes.CANCEL)
        client.flush()
        assert (await client.answer("Count to 2")).text == "1, 2"
        await backend.idle()
    assert backend.aborted == (not at_once)


async def test_a_connection_that_is_lost_ends_every_response(backend: DemoBackend) -> None:
    async with connected(backend) as client:
        seen = [client.ask(asked("Count to 3 [[demo:stall]]")) for _ in range(5)]
        await asyncio.gather(*[arrived(one, 1) for one in seen])
        assert backend.active == 5
    await backend.idle()
    assert backend.aborted == 5


async def test_a_client_that_breaks_the_protocol_is_closed(backend: DemoBackend) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(backend.base_url.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        await reader.read()
    writer.close()


async def test_the_backend_ends_before_its_responses() -> None:
    async with AsyncExitStack() as stack:
        async with serve_demo("grpc") as backend:
            client = await stack.enter_async_context(connected(backend))
            await arrived(client.ask(asked("Count to 3 [[demo:stall]]")), 1)
        assert (backend.active, backend.aborted) == (0, 0)
