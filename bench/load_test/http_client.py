"""Sends requests as bytes on separate connections and returns whole responses with their start and end times."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import httptools
import msgspec

from bench.load import Target

HEALTH: Final = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


class WholeResponse(msgspec.Struct, frozen=True):
    """A response. `begun` and `ended` are times of the event loop's clock: the body's first byte, and the response's
    end."""

    status: int
    headers: dict[str, str]
    body: bytes
    begun: float
    ended: float


class HttpConnection(asyncio.Protocol):
    """One connection with one response at a time, requested or not. `gone` is done when the other side has closed
    it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self.gone = self._loop.create_future()
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._begun = 0.0
        self.begun = self._loop.create_future()
        self._answer = self._loop.create_future()

    async def ask(self, request: bytes) -> WholeResponse:
        """Sends a request and waits for the end of its response. Raises ConnectionError."""
        self.say(request)
        return await self.answer()

    def say(self, request: bytes) -> None:
        """Sends a request without waiting."""
        self._transport.write(request)

    async def answer(self) -> WholeResponse:
        """Returns the next response. Raises ConnectionError when there will be none."""
        answer: WholeResponse = await self._answer
        self._begin()
        return answer

    async def begin(self, request: bytes) -> None:
        """Sends a request and waits for the first byte of the response's body. Raises ConnectionError."""
        self.say(request)
        await self.begun

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        if not self._pieces:
            self._begun = self._loop.time()
            self.begun.set_result(None)
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        body, now = b"".join(self._pieces), self._loop.time()
        answer = WholeResponse(self._parser.get_status_code(), self._headers, body, self._begun or now, now)
        self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self.begun, self._answer):
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("the gateway hung up"))
                waiting.exception()  # retrieved, so that asyncio does not log it
        if not self.gone.done():
            self.gone.set_result(None)

    def stop_reading(self) -> None:
        """Stops reading from the connection."""
        self._transport.pause_reading()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()


async def connect(target: Target) -> HttpConnection:
    """Opens a connection. Raises OSError."""
    place = urlsplit(target.url)
    host, port = place.hostname or "127.0.0.1", place.port or 80
    _, connection = await asyncio.get_running_loop().create_connection(HttpConnection, host, port)
    return connection
