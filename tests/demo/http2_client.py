"""An HTTP/2 client for tests of the demo backend, which sees every frame that the library reports."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.backend import METHOD
from adapters.proto.demo.response import envelope
from gateway.demo.serve import DemoBackend

HEADERS = (("content-type", "application/grpc+proto"), ("te", "trailers"))


class Seen(msgspec.Struct):
    """What arrived for one request. `writes` counts its DATA frames; `ended`: the stream ended; `code`: that of a
    reset."""

    head: dict[str, str] = {}
    body: bytes = b""
    writes: int = 0
    trailers: dict[str, str] | None = None
    ended: bool = False
    code: int | None = None
    changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def messages(self) -> list[pb.GenerateResponse]:
        """The messages of the body, each without its envelope."""
        found, rest = [], self.body
        while len(rest) >= 5 and len(rest) >= (end := 5 + int.from_bytes(rest[1:5], "big")):
            found.append(pb.GenerateResponse.FromString(rest[5:end]))
            rest = rest[end:]
        return found

    @property
    def text(self) -> str:
        return "".join(message.text for message in self.messages)


class Http2Client:
    """One connection. `acknowledges`: whether data that arrived widens the windows again. `last_stream` is that of a
    GOAWAY, behind which the library reads nothing. `pings` counts those of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, acknowledges: bool) -> None:
        self.state = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.closed = asyncio.Event()
        self.last_stream: int | None = None
        self.pings = 0
        self._reader, self._writer = reader, writer
        self._acknowledges = acknowledges
        self._seen: dict[int, Seen] = {}
        self.state.initiate_connection()
        self.flush()

    async def pump(self) -> None:
        """Read until the connection ends."""
        try:
            while self.last_stream is None and (data := await self._reader.read(65536)):
                self._receive(data)
        except ConnectionResetError:
            pass
        self.closed.set()
        for seen in self._seen.values():
            seen.changed.set()

    def ask(self, body: bytes, headers: Sequence[tuple[str, str]] = HEADERS, ends: bool = True) -> Seen:
        """Send a request, with its end or without it."""
        number = self.state.get_next_available_stream_id()
        pseudo = ((":method", "POST"), (":path", METHOD), (":scheme", "http"), (":authority", "demo"))
        self.state.send_headers(number, [*pseudo, *headers])
        self.state.send_data(number, body, end_stream=ends)
        self.flush()
        self._seen[number] = Seen()
        return self._seen[number]

    async def answer(self, question: str) -> Seen:
        """Ask the question and wait for the end of the response."""
        seen = self.ask(asked(question))
        async with asyncio.timeout(10):
            while not (seen.ended or seen.code is not None or self.closed.is_set()):
                await seen.changed.wait()
                seen.changed.clear()
        return seen

    def flush(self) -> None:
        """Send what the state has to say."""
        self._writer.write(self.state.data_to_send())

    def _receive(self, data: bytes) -> None:
        for event in self.state.receive_data(data):
            self._take(event)
        self.flush()

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived(stream_id=number, headers=headers):
                self._seen[number].head = _texts(headers)
            case TrailersReceived(stream_id=number, headers=headers):
                self._seen[number].trailers = _texts(headers)
            case DataReceived(stream_id=number, data=data, flow_controlled_length=length):
                self._seen[number].body += data
                self._seen[number].writes += 1
                if self._acknowledges:
                    self.state.acknowledge_received_data(length, number)
            case StreamEnded(stream_id=number):
                self._seen[number].ended = True
            case StreamReset(stream_id=number, error_code=code):
                self._seen[number].code = int(code)
            case ConnectionTerminated(last_stream_id=last):
                self.last_stream = last
            case PingReceived():
                self.pings += 1
            case _:
                pass
        for seen in self._seen.values():
            seen.changed.set()


def asked(question: str) -> bytes:
    """A request with one question, in its envelope."""
    turn = pb.Turn(role=pb.ROLE_USER, parts=[pb.Part(text=question)])
    return envelope(pb.GenerateRequest(turns=[turn]).SerializeToString())


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}


@asynccontextmanager
async def connected(backend: DemoBackend, acknowledges: bool = True) -> AsyncIterator[Http2Client]:
    """Connect to the backend until the block ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(backend.base_url).port)
    client = Http2Client(reader, writer, acknowledges)
    async with asyncio.TaskGroup() as tasks:
        pump = tasks.create_task(client.pump())
        try:
            yield client
        finally:
            pump.cancel()
            writer.transport.abort()
