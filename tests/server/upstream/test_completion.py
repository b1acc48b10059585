"""Tests a whole response that the gateway asks for itself, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendError, BackendRejected, BackendTimeout, BackendTruncated, GatewayError
from gateway.core.events import Event, Finish, TextDelta
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import complete
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings
from tests.server.backend import END, HEAD, Connection, FaultyBackend, Script, answer, events, faulty_backend

HELLO = Conversation((Turn("user", (Text("Hello"),)),), model="inner")


class Asking:
    """Asks a scripted backend, with the transport of a gateway."""

    def __init__(self, stack: AsyncExitStack, transport: Transport) -> None:
        self._stack = stack
        self.transport = transport

    async def backend(self, script: Script, max_concurrent: int | None = None) -> tuple[Backend, FaultyBackend]:
        scripted = await self._stack.enter_async_context(faulty_backend(script))
        entry = BackendSettings("tests.server.plain:PlainAdapter", scripted.base_url, max_concurrent=max_concurrent)
        return Backend("plain", entry, 1 << 20), scripted

    async def ask(self, backend: Backend, deadline_s: float = 20) -> list[Event]:
        return await complete(self.transport, backend, Exchange(backend.adapter, HELLO, Policy()), deadline_s)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    async with AsyncExitStack() as stack:
        yield Asking(stack, await stack.enter_async_context(Transport(1 << 20, 1 << 16)))


async def test_the_events_of_a_whole_response_are_returned(asking: Asking) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hel"), events("text lo", "finish"), END)

    backend, scripted = await asking.backend(script)
    found = await asking.ask(backend)
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == "Hello"
    assert isinstance(found[-1], Finish)
    assert scripted.seen[0][1] == b"inner\nHello"


async def refusing(connection: Connection) -> None:
    await connection.send(answer("400 x", b"no"))


async def breaking(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hel"))
    connection.close()


async def vanishing(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hel", "vanish"), END)


async def failing(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hel", "error broken"), END)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (refusing, BackendRejected),
        (breaking, BackendTruncated),
        (vanishing, BackendTruncated),
        (failing, BackendRejected),
    ],
)
async def test_a_failure_is_never_an_answer(asking: Asking, script: Script, kind: type[BackendError]) -> None:
    backend, _ = await asking.backend(script)
    with pytest.raises(kind):
        await asking.ask(backend)
    assert backend.concurrency.taken == 0


async def test_a_silent_backend_is_left_at_the_deadline(asking: Asking) -> None:
    async def silent(connection: Connection) -> None:
        await connection.gone()

    backend, scripted = await asking.backend(silent)
    async with asyncio.timeout(20):
        asked = asyncio.create_task(asking.ask(backend, 2))
        # A deadline that passes before there is a connection would close none.
        await scripted.requested.wait()
        with pytest.raises(BackendTimeout, match="not complete within 2 s"):
            await asked
        await scripted.closed.wait()


async def test_it_counts_for_the_limit_of_the_backend(asking: Asking) -> None:
    async def silent(connection: Connection) -> None:
        await connection.gone()

    backend, scripted = await asking.backend(silent, max_concurrent=1)
    first = asyncio.create_task(asking.ask(backend))
    await scripted.requested.wait()
    with pytest.raises(GatewayError, match="max_concurrent"):
        await asking.ask(backend)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert backend.concurrency.taken == 0
