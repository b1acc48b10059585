"""uvicorn's httptools protocol, with the promises it lacks: a deadline and caps for the request's head.

Also: trailers never become headers, and exactly one Host. (httptools itself refuses Content-Length beside
Transfer-Encoding, and bare LF.)
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128
BAD_REQUEST: Final = (
    b'{"error":{"message":"The request is not valid HTTP.","type":"invalid_request_error",'
    b'"param":null,"code":"invalid_http"}}'
)

FULL: Final = (
    b'{"error":{"message":"The gateway has no room for another connection.","type":"server_error",'
    b'"param":null,"code":"overloaded"}}'
)


class HeadError(Exception):
    """A head that is not accepted."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection. The limits are set on a subclass by `guarded`."""

    head_timeout_s: float = 10
    max_connections: int = 100_000

    _head_timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(b"503 Service Unavailable", FULL, b"retry-after: 1\r\n")
            return
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is None and self._in_head:
            self._start_head()
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return
        self._grow(len(name) + len(value))
        if len(self.headers) >= MAX_HEADERS:
            raise HeadError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        hosts = sum(1 for name, _ in self.headers if name == b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise HeadError
        self.scope["state"]["abort"] = self.transport.abort
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        if self._answering:
            # An answer is on its way: a second one in its midst would be taken for a part of it.
            self.transport.abort()
            return
        self._refuse(b"400 Bad Request", BAD_REQUEST)

    def _refuse(self, status: bytes, body: bytes, more: bytes = b"") -> None:
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\n%scontent-length: %d\r\n\r\n"
        self.transport.write(head % (status, more, len(body)) + body)
        self.transport.close()

    @property
    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, though declared otherwise
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _grow(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD:
            raise HeadError

    def _start_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._head_late)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_late(self) -> None:
        self._head_timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.abort()


def guarded(head_timeout_s: float, max_connections: int) -> type[GuardedProtocol]:
    """The protocol class for uvicorn, with a deadline for every request's head and room for so many connections."""
    limits = {"head_timeout_s": head_timeout_s, "max_connections": max_connections}
    return type("GuardedProtocol", (GuardedProtocol,), limits)
