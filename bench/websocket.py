"""Asks for the same responses over a WebSocket: one connection, and one request after the other on it."""

import asyncio
import time
from typing import Final
from urllib.parse import urlsplit

from bench.load import Connection, Load, Target

# A mask of zeros leaves the bytes as they are.
_MASK: Final = bytes(4)
# So every event begins, and with the second one a response is complete. Nothing else of a frame is read: a client that
# takes its time changes what the gateway has to do for a chunk.
_EVENT: Final = b'{"type":"response.'
_LAST: Final = _EVENT + b'completed"'


class WebSocketTarget(Target, frozen=True):
    """The address of an endpoint that is spoken to over WebSockets."""

    def encode(self, body: bytes) -> bytes:
        """Returns the frame of the request."""
        text = b'{"type":"response.create",' + body[1:]
        size = len(text)
        head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + size.to_bytes(2, "big")
        return head + _MASK + text

    def connection(self, load: Load, events: int) -> "WebSocketConnection":
        """Returns the protocol of a connection."""
        return WebSocketConnection(self, load, events)


class WebSocketConnection(Connection):
    """One WebSocket with one response at a time."""

    def __init__(self, target: Target, load: Load, events: int) -> None:
        super().__init__(load, events)
        self._target = target
        self._opened = asyncio.get_running_loop().create_future()
        self._data = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        super().connection_made(transport)
        place = urlsplit(self._target.url)
        lines = [
            f"GET {place.path} HTTP/1.1",
            f"host: {place.netloc}",
            "connection: Upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
            *[f"{name}: {value}" for name, value in self._target.headers],
        ]
        transport.write("\r\n".join([*lines, "", ""]).encode())

    async def ask(self, request: bytes) -> None:
        """Sends the request and waits for the end of its response."""
        await self._opened
        self._done = asyncio.get_running_loop().create_future()
        self._begun = time.perf_counter()
        self._first = 0.0
        self._events = 0
        self._transport.write(request)
        await self._done

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._opened.done():
            head, end, self._data = self._data.partition(b"\r\n\r\n")
            if not end:
                self._data = head
                return
            if not head.startswith(b"HTTP/1.1 101"):
                raise ConnectionError(head.decode())
            self._opened.set_result(None)
        if not self._data:
            return
        self._first = self._first or time.perf_counter()
        last = self._data.find(_LAST)
        # The length of a frame of this size stands in the two bytes before its text.
        if last >= 0 and len(self._data) >= last + int.from_bytes(self._data[last - 2 : last], "big"):
            self._events = self._data.count(_EVENT)
            self._data = b""
            self._complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self._opened.done():
            self._opened.set_exception(ConnectionError("no upgrade"))

    def _complete(self) -> None:
        now = time.perf_counter()
        if self._events >= self._expected:
            self._load.whole.append(now - self._begun)
            self._load.first.append(self._first - self._begun)
            self._load.events += self._events
        else:
            self._load.errors += 1
        self._end()
