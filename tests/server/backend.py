"""A raw TCP server that plays a scripted, mostly faulty backend, and remembers what it saw."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

Script: TypeAlias = "Callable[[Connection], Awaitable[None]]"

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def events(*texts: str) -> bytes:
    """Events of the made-up wire, as one chunk."""
    return chunk(b"".join(b"data: %s\n\n" % text.encode() for text in texts))


def answer(status: str, body: bytes = b"", *headers: bytes) -> bytes:
    """A whole answer."""
    lines = [b"HTTP/1.1 " + status.encode(), b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Connection:
    """One connection from the gateway, with its first request read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""
        self.body = b""

    async def read_request(self) -> bool:
        """The next request; False when the gateway has hung up."""
        try:
            self.head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        size = next(
            (int(line[15:]) for line in self.head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        self.body = await self.reader.readexactly(size)
        return True

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the gateway hangs up."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass

    def reset(self) -> None:
        """Close with RST."""
        self.writer.transport.abort()


class FaultyBackend:
    """`seen` holds every request, head and body; `closed` is set when the gateway let go of a connection."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[tuple[bytes, bytes]] = []
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            while await connection.read_request():
                self.seen.append((connection.head, connection.body))
                self.asked.set()
                await self.script(connection)
                if writer.is_closing():
                    break
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.close()


@asynccontextmanager
async def faulty_backend(script: Script) -> AsyncIterator[FaultyBackend]:
    """Serve the script for every request until the block ends."""
    backend = FaultyBackend(script)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()
