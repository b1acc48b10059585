"""A client may leave in any phase of its request: what is made again of it equals what was captured."""

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.core.conversation import Json
from gateway.exchange import Exchange
from gateway.server.api import endpoint
from gateway.testing.faulty import Connection, Script, chunk, faulty_backend, head
from gateway.testing.gateway import running_gateway
from tests.promises.wire_gateway import wire_settings
from tests.promises.wires import WIRES
from tests.server.inspect.test_fidelity import ALWAYS, check_all, demo_gateway, interactions


async def _before_the_head(connection: Connection) -> None:
    await connection.gone()


async def _behind_the_head(connection: Connection) -> None:
    await connection.send(head("text/event-stream"))
    await connection.gone()


async def _within_the_text(connection: Connection) -> None:
    await connection.send(head("text/event-stream"), chunk(WIRES["native"].spoken.answer[:40]))
    await connection.gone()


async def _within_a_refusal(connection: Connection) -> None:
    await connection.send(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{")
    await connection.gone()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", [_before_the_head, _behind_the_head, _within_the_text, _within_a_refusal])
async def test_a_client_that_leaves(script: Script, stream: bool) -> None:
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(script))
        settings = {**wire_settings(WIRES["native"], {"m": backend.base_url}), **ALWAYS}
        gateway = await stack.enter_async_context(running_gateway(settings))
        asking = asyncio.create_task(gateway.chat(stream=stream))
        async with asyncio.timeout(10):
            await backend.requested.wait()
            await asyncio.sleep(0.1)  # until what the backend sends has arrived
            asking.cancel()
            await backend.closed.wait()
            while gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.01)
        (one,) = interactions(gateway)
        assert one.end is not None
        assert (one.end.status, one.end.code, one.end.cut) == (499, "client_gone", "client_gone")
        check_all(gateway)


async def test_a_client_that_leaves_while_its_request_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent for it, and no notice of the preparation is told."""
    loop, begun, left, prepared = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), Exchange

    def wait(*args: Any) -> Exchange:
        loop.call_soon_threadsafe(begun.set)
        assert left.wait(30)
        return prepared(*args)

    monkeypatch.setattr(endpoint, "Exchange", wait)
    # What is large is prepared in a thread.
    messages: Json = [{"role": "tool", "tool_call_id": "c", "content": "lost " * 30_000}]
    async with demo_gateway() as gateway:
        asking = asyncio.create_task(gateway.chat(model="demo-chat", messages=messages))
        async with asyncio.timeout(30):
            await begun.wait()
            asking.cancel()
            while gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.01)
        left.set()
        (one,) = interactions(gateway)
        assert one.body is not None and one.sent is None and one.end is not None and one.end.status == 499
        check_all(gateway)
