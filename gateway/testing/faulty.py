"""Runs a backend that plays a script over raw sockets, faults included, and records its requests.

    async with faulty_backend(script) as backend:
        ...  # a gateway whose backend entry has backend.base_url
    assert len(backend.seen) == 1

A script is a coroutine that receives the connection once its request has been read. It may send any bytes, close,
reset or stall. `gateway.testing.faults` has one for every fault that the gateway makes a promise about.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

Script: TypeAlias = "Callable[[Connection], Awaitable[None]]"

END: Final = b"0\r\n\r\n"


def head(media_type: str) -> bytes:
    """Builds the head of a 200 with a chunked body."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % media_type.encode()


HEAD: Final = head("text/event-stream")


def chunk(data: bytes) -> bytes:
    """Builds one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(status: str, body: bytes = b"", *headers: bytes) -> bytes:
    """Builds a whole response. `status` is the code and the reason phrase: `429 Too Many Requests`."""
    lines = [b"HTTP/1.1 " + status.encode(), b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Connection:
    """One connection from the gateway, with its latest request in `head` and `body`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""
        self.body = b""

    async def read_request(self) -> bool:
        """Reads the next request. Returns False when the gateway has closed the connection."""
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
        """Sends bytes unchanged. Raises ConnectionError when the gateway has closed the connection."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def gone(self) -> None:
        """Waits until the gateway closes the connection."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        """Closes with FIN, after the sent bytes."""
        self.writer.close()

    def reset(self) -> None:
        """Closes with RST; bytes in transit are lost."""
        self.writer.transport.abort()


class FaultyBackend:
    """The running backend. `seen` holds every request, head and body; `closed` is set when the gateway closed a
    connection. A backend that `speaks_first` plays its script once per connection, before it reads."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.speaks_first = False
        self.seen: list[tuple[bytes, bytes]] = []
        self.requested = asyncio.Event()
        self.closed = asyncio.Event()
        self.port = 0
        self.scheme = "http"
        self._open: set[asyncio.StreamWriter] = set()
        self._playing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Plays the script for every request of one connection."""
        connection = Connection(reader, writer)
        playing = asyncio.current_task()
        assert playing is not None
        self._open.add(writer)
        self._playing.add(playing)
        try:
            if self.speaks_first:
                await self.script(connection)
            while not writer.is_closing() and await connection.read_request():
                self.seen.append((connection.head, connection.body))
                self.requested.set()
                await self.script(connection)
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            # Python 3.11's streams fail if their callback is cancelled.
            if not self._closed:
                raise
        finally:
            self.closed.set()
            self._playing.discard(playing)
            self._open.discard(writer)
            writer.close()

    def hang_up(self) -> None:
        """Resets every open connection."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def close(self) -> None:
        """Resets every connection and cancels every running script."""
        self._closed = True
        self.hang_up()
        for playing in self._playing:
            playing.cancel()
        await asyncio.gather(*self._playing)


@asynccontextmanager
async def faulty_backend(script: Script) -> AsyncIterator[FaultyBackend]:
    """Serves the script for every request until the block ends."""
    backend = FaultyBackend(script)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()
        await backend.close()
