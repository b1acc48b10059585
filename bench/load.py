"""Repeats one request on several connections for some seconds and measures the rate and the response times."""

import asyncio
import math
import time
from collections.abc import Callable
from statistics import median
from urllib.parse import urlsplit

import httptools
import msgspec

from bench import payload


class Target(msgspec.Struct, frozen=True):
    """The address of an endpoint, the headers that it needs, and what builds its requests."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    request: Callable[..., bytes] = payload.request

    def encode(self, body: bytes) -> bytes:
        """Returns the bytes of the request."""
        place = urlsplit(self.url)
        lines = [f"POST {place.path} HTTP/1.1", f"host: {place.netloc}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body

    def connection(self, load: "Load", events: int) -> "Connection":
        """Returns the protocol of a connection."""
        return Connection(load, events)


class Load(msgspec.Struct):
    """The result. Times are in seconds, and only of whole responses."""

    seconds: float = 0.0
    errors: int = 0
    events: int = 0
    whole: list[float] = []
    first: list[float] = []

    @property
    def rate(self) -> float:
        """Responses per second."""
        return len(self.whole) / self.seconds

    @property
    def event_rate(self) -> float:
        """Streamed events per second."""
        return self.events / self.seconds


def middle(times: list[float]) -> float:
    """The median, or NaN without values."""
    return median(times) if times else math.nan


class Connection(asyncio.Protocol):
    """One connection with one response at a time."""

    def __init__(self, load: Load, events: int) -> None:
        self._load = load
        self._expected = events
        self._done: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self._transport = transport

    async def ask(self, request: bytes) -> None:
        """Sends the request and waits for the end of its response."""
        self._parser = httptools.HttpResponseParser(self)
        self._done = asyncio.get_running_loop().create_future()
        self._begun = time.perf_counter()
        self._first = 0.0
        self._events = 0
        self._last = b""
        self._transport.write(request)
        await self._done

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._first = self._first or time.perf_counter()
        self._events += (self._last[-1:] + body).count(b"\n\n")
        self._last = body if len(body) > 1 else self._last[-1:] + body

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        if self._parser.get_status_code() == 200 and self._events >= self._expected and self._last:
            self._load.whole.append(now - self._begun)
            self._load.first.append(self._first - self._begun)
            self._load.events += self._events
        else:
            self._load.errors += 1
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._load.errors += 1
        self._end()

    def _end(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    @property
    def closed(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.abort()


async def drive(
    target: Target, body: bytes, *, connections: int, seconds: float, stream: bool, events: int = payload.CHUNKS
) -> Load:
    """Keeps every connection busy. A streamed response with fewer events than the backend sent is an error."""
    load = Load()
    request = target.encode(body)
    begun = time.perf_counter()
    await asyncio.gather(
        *(_repeat(target, request, load, begun + seconds, events if stream else 0) for _ in range(connections))
    )
    load.seconds = time.perf_counter() - begun
    return load


async def _repeat(target: Target, request: bytes, load: Load, until: float, events: int) -> None:
    connection: Connection | None = None
    while time.perf_counter() < until:
        if connection is None or connection.closed:
            connection = await connect(target, load, events)
        await connection.ask(request)
    if connection is not None:
        connection.close()


async def connect(target: Target, load: Load, events: int = 0) -> Connection:
    """Opens a connection."""
    place = urlsplit(target.url)
    loop = asyncio.get_running_loop()
    host, port = place.hostname or "127.0.0.1", place.port or 80
    _, connection = await loop.create_connection(lambda: target.connection(load, events), host, port)
    return connection
