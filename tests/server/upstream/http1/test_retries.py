"""Tests on real sockets which requests are sent once more on another connection."""

import asyncio

import pytest

from gateway.core.errors import BackendError
from gateway.testing.faulty import Connection
from tests.server.upstream.http1.peer import WHOLE, reset, serving, talking
from tests.server.upstream.transport_client import client_of


async def test_a_kept_connection_that_dies_under_a_request_is_replaced_if_it_was_not_sent_in_full() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        first = len(connections) == 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            if first and b"length: 3\r\n" not in head:
                writer.transport.abort()
                return
            await reader.readexactly(3 if first else len(large))
            writer.write(WHOLE)

    connections: list[asyncio.StreamWriter] = []
    large = b"x" * 2**25
    async with serving(script) as port, client_of(f"http://127.0.0.1:{port}") as client:
        assert await client.ask(b"one") == b"abc"
        assert await client.ask(large) == b"abc"
        assert (client.tries, len(connections)) == (3, 2)


async def test_a_request_that_may_have_run_is_not_sent_again() -> None:
    async def script(connection: Connection) -> None:
        if len(backend.seen) == 1:
            await connection.send(WHOLE)
        else:
            reset(connection)

    async with talking(script) as (client, backend, numbers):
        assert await client.ask() == b"abc"
        with pytest.raises(BackendError) as caught:
            await client.ask()
        assert (caught.value.code, client.tries, numbers) == ("upstream_connection_error", 2, [0, 0])
