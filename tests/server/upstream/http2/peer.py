"""A server of HTTP/2 whose every frame a test decides, and a client of it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias, TypeVar

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived, StreamEnded
from h2.settings import SettingCodes

from gateway.server.upstream.transport import encode_http2_head
from tests.server.upstream.transport_client import TransportClient, client_of

E = TypeVar("E", bound=Event)
Fields: TypeAlias = Sequence[tuple[str, str]]

HEAD: Final[Fields] = ((":status", "200"), ("content-type", "application/grpc"))
# The type of the frame.
GOAWAY: Final = 7
OK: Final[Fields] = (("grpc-status", "0"),)


class Peer:
    """One connection of the server. `state` encodes and decodes its frames; `number` counts connections from 0."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.state = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.writer = writer
        self.number = number
        # Whether what arrives widens the windows again.
        self.acknowledges = True
        self.requests: dict[int, bytes] = {}
        self.heads: dict[int, Mapping[bytes, bytes]] = {}
        self._reader = reader
        self._events: list[Event] = []

    def greet(self, settings: Mapping[SettingCodes, int] | None = None) -> None:
        """Send the first SETTINGS."""
        self.state.local_settings.update({int(code): value for code, value in (settings or {}).items()})
        self.state.local_settings.acknowledge()
        self.state.initiate_connection()
        self.flush()

    async def next(self, kind: type[E]) -> E:
        """The next event of this kind; those before it are passed over. Raises EOFError when the connection ends."""
        while True:
            while self._events:
                event = self._events.pop(0)
                if isinstance(event, kind):
                    return event
            if not (data := await self._reader.read(2**16)):
                raise EOFError
            for event in self.state.receive_data(data):
                self._note(event)
                self._events.append(event)
            self.flush()

    async def request(self) -> int:
        """The stream of the next request that has arrived whole."""
        return (await self.next(StreamEnded)).stream_id

    async def closed(self) -> bool:
        """Wait until the client closes the connection."""
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                await self.next(Event)
        return True

    def answer(self, stream: int, body: bytes = b"abc", trailers: Fields = OK) -> None:
        """Send a whole response."""
        self.begin(stream)
        self.state.send_data(stream, body)
        self.end(stream, trailers)

    def begin(self, stream: int, head: Fields = HEAD) -> None:
        self.state.send_headers(stream, head)
        self.flush()

    def data(self, stream: int, data: bytes) -> None:
        self.state.send_data(stream, data)
        self.flush()

    def end(self, stream: int, trailers: Fields = OK) -> None:
        self.state.send_headers(stream, trailers, end_stream=True)
        self.flush()

    def reset(self, stream: int, code: ErrorCodes) -> None:
        self.state.reset_stream(stream, code)
        self.flush()

    def raw(self, data: bytes) -> None:
        """Send bytes that `state` does not know of."""
        self.flush()
        self.writer.write(data)

    def flush(self) -> None:
        self.writer.write(self.state.data_to_send())

    def _note(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=stream, headers=fields):
                self.requests[stream], self.heads[stream] = b"", dict(fields)
            case DataReceived(stream_id=stream, data=data, flow_controlled_length=size):
                self.requests[stream] += data
                if self.acknowledges:
                    self.state.acknowledge_received_data(size, stream)
            case _:
                pass


Script: TypeAlias = Callable[[Peer], Awaitable[None]]


def frame(kind: int, stream: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    """The bytes of a frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


async def answers(peer: Peer) -> None:
    """Answer every request."""
    peer.greet()
    while True:
        peer.answer(await peer.request())


def goes_away(code: ErrorCodes) -> Script:
    """A backend that excludes the request."""

    async def script(peer: Peer) -> None:
        peer.greet()
        await peer.request()
        peer.raw(frame(GOAWAY, payload=bytes(4) + code.to_bytes(4, "big")))
        await peer.closed()

    return script


@asynccontextmanager
async def serving(script: Script, context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[Peer]]]:
    """The port of a server that plays this on every connection, and its connections."""
    peers: list[Peer] = []
    tasks: list[asyncio.Task[None]] = []

    async def play(peer: Peer) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            await script(peer)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(Peer(reader, writer, len(peers)))
        tasks.append(asyncio.ensure_future(play(peers[-1])))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], peers
    finally:
        server.close()
        for peer in peers:
            peer.writer.transport.abort()
        for task in tasks:
            task.cancel()
        # A script that failed fails its test.
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


def asking(base_url: str, most: int = 2**30) -> AbstractAsyncContextManager[TransportClient]:
    """A client that asks over HTTP/2."""
    return client_of(base_url, most, encode_http2_head)


@asynccontextmanager
async def talking(script: Script, most: int = 2**30) -> AsyncIterator[tuple[TransportClient, list[Peer]]]:
    """A client, and the connections of its backend."""
    async with (
        serving(script) as (port, peers),
        asking(f"http://127.0.0.1:{port}", most) as client,
    ):
        yield client, peers
