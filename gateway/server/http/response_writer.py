"""Writes one response as the bytes of HTTP/1.1 on its connection.

The callers set headers of known names; one check of the whole head shows that no header value ends its line.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from gateway.server.http.flow_control import FlowControl
from gateway.server.http.request_body import RequestBody
from gateway.server.log.logger import LOGGER

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

# RFC 9112, section 6.3.
_BODILESS: Final = frozenset({204, 304})
_CHUNK: Final = b"%x\r\n%b\r\n"
_LENGTH: Final = "The response body does not have the length that its head declares."
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class Peer(Protocol):
    """The client of a response. `on_lost` is called once when its connection is closed, by either side."""

    on_lost: Callable[[], None] | None

    def cut(self) -> None:
        """Closes the connection now; unsent bytes are lost."""
        ...


class WriterConnection(Peer, Protocol):
    """The client's connection to our own server."""

    transport: asyncio.Transport
    flow: FlowControl
    server_state: ServerState

    def answered(self) -> None:
        """Records that a response is complete; the next request may begin."""
        ...


class Writer(Protocol):
    """Writes one response: as HTTP/1.1 (`ResponseWriter`), or as the messages of ASGI (`AsgiWriter`). Only `send` and
    `ready` wait while the client is slow."""

    @property
    def connection(self) -> Peer: ...

    @property
    def flow(self) -> FlowControl: ...

    @property
    def request_body(self) -> RequestBody: ...

    async def ready(self) -> None:
        """Waits while the client is slow. On the hot path, check `flow.write_paused` first."""
        ...

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends the whole response at once."""
        ...

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """Sends the head, and possibly a part of the body."""
        ...

    def write(self, body: bytes) -> None:
        """Sends a part of the body."""
        ...

    def close(self, body: bytes = b"") -> None:
        """Sends the last part of the body."""
        ...

    async def send(self, message: Message) -> None:
        """Implements the `send` of ASGI."""
        ...


class ResponseWriter:
    """One response. Header names are lower case. Nothing is written once the client has disconnected. A head or a body
    that would break the framing raises RuntimeError.

    Only `send` and `ready` wait while the client is slow."""

    __slots__ = (
        *("_chunked", "_left", "_method", "_transport", "_version"),
        *("connection", "flow", "request_body", "keep_alive", "started"),
    )

    def __init__(
        self, connection: WriterConnection, request_body: RequestBody, method: str, version: str, keep_alive: bool
    ) -> None:
        self.connection = connection
        self.flow = connection.flow
        self._transport = connection.transport
        self.request_body = request_body
        self.keep_alive = keep_alive
        self.started = False
        self._method = method
        self._version = version
        self._chunked = False
        self._left: int | None = None

    async def ready(self) -> None:
        """Waits while the client is slow. On the hot path, check `flow.write_paused` first."""
        if self.flow.write_paused and not self.request_body.over:
            await self.flow.drain()

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends the whole response at once."""
        if not self.request_body.over:
            head = self._head(status, headers)
            # Else the body is sent in chunks, or not at all, or its length is wrong.
            whole = self._left == len(body)
            self._transport.write(head + (body if whole else self._last(body)))
            self.started = True
            self.request_body.expects_continue = False
            self._end()

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """Sends the head, and possibly a part of the body."""
        if not self.request_body.over:
            data = self._head(status, headers)
            if body:
                data += _CHUNK % (len(body), body) if self._chunked else self._plain(body)
            self._transport.write(data)
            self.started = True
            self.request_body.expects_continue = False

    def write(self, body: bytes) -> None:
        """Sends a part of the body."""
        if body and not self.request_body.over:
            self._transport.write(_CHUNK % (len(body), body) if self._chunked else self._plain(body))

    def close(self, body: bytes = b"") -> None:
        """Sends the last part of the body."""
        if not self.request_body.over:
            self._transport.write(self._last(body))
            self._end()

    async def send(self, message: Message) -> None:
        """Implements the `send` of ASGI."""
        await self.ready()
        if message["type"] == "http.response.start":
            self.open(message["status"], message.get("headers", ()))
        elif message.get("more_body", False):
            self.write(message.get("body", b""))
        else:
            self.close(message.get("body", b""))

    def conclude(self, task: asyncio.Task[None]) -> None:
        """Finishes the response after the application has returned. An incomplete response ends with its connection, so
        that no client takes it for complete."""
        connection = self.connection
        connection.server_state.tasks.discard(task)
        if task.cancelled():
            # The process ends, and the client has read nothing for long.
            self._transport.abort()
            return
        error = task.exception()
        if error is None and (self.request_body.over or self._transport.is_closing()):
            return
        LOGGER.error(
            "the application failed" if error else "the application did not complete its response", exc_info=error
        )
        if self.started:
            self._transport.close()
        else:
            self.whole(500, (_TEXT, (b"content-length", b"21"), (b"connection", b"close")), b"Internal Server Error")

    def _end(self) -> None:
        self.request_body.end()
        if not self.keep_alive:
            self._transport.close()
        self.connection.answered()

    def _head(self, status: int, headers: Headers) -> bytes:
        pairs = (*self.connection.server_state.default_headers, *headers)
        lines = [*map(b": ".join, pairs)]
        content = b"".join(lines)
        # Not `in`: for bytes it first tries a number, and takes ten times as long.
        if content.find(b"\n") >= 0 or content.find(b"\r") >= 0:
            raise RuntimeError("A response header contains a line break.")
        bodiless = status in _BODILESS or self._method == "HEAD"
        # A client of HTTP/1.0 reads the body until the connection ends.
        self._chunked = not bodiless and self._version != "1.0"
        self._left = 0 if bodiless else None
        closing = False
        for name, value in pairs:
            if name == b"content-length":
                self._chunked = False
                self._left = 0 if bodiless else int(value)
            elif name == b"connection":
                closing = b"close" in value.split(b", ")
        if closing:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close")
        if self._chunked:
            lines.append(b"transfer-encoding: chunked")
        return STATUS_LINE[status] + b"\r\n".join(lines) + b"\r\n\r\n"

    def _plain(self, body: bytes) -> bytes:
        if self._method == "HEAD":
            return b""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0:
                raise RuntimeError(_LENGTH)
        return body

    def _last(self, body: bytes) -> bytes:
        if self._chunked:
            return (_CHUNK % (len(body), body) if body else b"") + b"0\r\n\r\n"
        data = self._plain(body)
        if self._left:
            raise RuntimeError(_LENGTH)
        return data
