"""Tests on real sockets how a connection is opened: to a port that refuses, to a name, and within its deadline."""

import asyncio
import socket
import time

import pytest

from gateway.core.errors import BackendError
from gateway.server.upstream import transport
from gateway.server.upstream.http import connect
from gateway.testing.faulty import FaultyBackend
from tests.server.upstream.http1.peer import WHOLE, port_of, says, serving, talking
from tests.server.upstream.transport_client import client_of


def _closed_port() -> socket.socket:
    """A port that refuses until it listens."""
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    return closed


async def test_a_refused_connection_is_tried_twice() -> None:
    with _closed_port() as closed:
        async with client_of(f"http://127.0.0.1:{port_of(closed)}") as client:
            with pytest.raises(BackendError) as caught:
                await client.send()
            assert (caught.value.code, client.tries) == ("upstream_connection_error", 2)
            for connect, again in ((5.0, False), (0.05, True)):
                client.tries = 0
                with pytest.raises(BackendError):
                    await client.send(connect=connect, again=again)
                assert client.tries == 1


async def test_a_backend_that_starts_meanwhile_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for the backend to start before the second try.
    monkeypatch.setattr(transport, "PAUSE_S", 1)
    refused = asyncio.Event()
    connect_to = connect._connect

    async def watched(loop: asyncio.AbstractEventLoop, place: connect.Place, last_descriptor: int) -> socket.socket:
        try:
            return await connect_to(loop, place, last_descriptor)
        except OSError:
            refused.set()
            raise

    monkeypatch.setattr(connect, "_connect", watched)
    with _closed_port() as closed:
        async with client_of(f"http://127.0.0.1:{port_of(closed)}") as client:
            asked = asyncio.create_task(client.ask())
            async with asyncio.timeout(20):
                await refused.wait()
            backend = FaultyBackend(says(WHOLE))
            async with serving(backend.serve, closed):
                assert (await asked, client.tries) == (b"abc", 2)


async def test_a_name_that_nobody_knows() -> None:
    async with client_of("http://nobody.invalid:1") as client:
        with pytest.raises(BackendError) as caught:
            await client.send(connect=1)
        assert caught.value.code == "upstream_connection_error"


async def test_a_name_with_several_addresses_leads_to_the_one_that_listens() -> None:
    async with talking(says(WHOLE)) as (client, backend, _):
        client.base_url = f"http://localhost:{backend.port}"
        assert await client.ask() == b"abc"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_connecting_ends_with_its_deadline(scheme: str) -> None:
    # Nobody accepts: the second connection waits in vain, and the first for its handshake.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) if scheme == "http" else socket.socket():
            async with client_of(f"{scheme}://127.0.0.1:{port}") as client:
                began = time.monotonic()
                with pytest.raises(BackendError) as caught:
                    await client.send(connect=0.2)
                assert (caught.value.code, client.tries) == ("upstream_connection_error", 1)
                assert "in time" in caught.value.message
                # Less than the limits of the system and of a handshake.
                assert time.monotonic() - began < 20
