"""Backends of the tests over HTTP/1.1, which play a script on every connection, and the client before them."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gateway.testing.faulty import Connection, FaultyBackend, Script, answer, faulty_backend
from tests.server.upstream.transport_client import TransportClient, client_of

OK: Final = b"HTTP/1.1 200 OK\r\n"
WHOLE: Final = answer("200 OK", b"abc")
CERTIFICATE: Final = Path(__file__).parent / "localhost.pem"


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


@asynccontextmanager
async def talking(script: Script, most: int = 2**30) -> AsyncIterator[tuple[TransportClient, FaultyBackend, list[int]]]:
    """A client, its backend, and for each request the number of its connection."""
    connections: list[Connection] = []
    numbers: list[int] = []

    async def counted(connection: Connection) -> None:
        if connection not in connections:
            connections.append(connection)
        numbers.append(connections.index(connection))
        await script(connection)

    async with faulty_backend(counted) as backend, client_of(backend.base_url, most) as client:
        yield client, backend, numbers


def reset(connection: Connection) -> None:
    """Close with a real RST, also when everything has been read."""
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.reset()


@asynccontextmanager
async def serving(
    play: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    sock: socket.socket | None = None,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """The port of a server that plays this on every connection."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await play(reader, writer)

    server = await asyncio.start_server(serve, sock=sock or socket.create_server(("127.0.0.1", 0)), ssl=context)
    try:
        yield port_of(server.sockets[0])
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)


def says(*pieces: bytes, then: Callable[[Connection], None] | None = None) -> Script:
    """A backend that sends these pieces, a moment apart, and then closes or resets."""

    async def script(connection: Connection) -> None:
        for piece in pieces:
            await connection.send(piece)
            await asyncio.sleep(0.01)
        if then is not None:
            then(connection)

    return script
