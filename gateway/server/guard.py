"""uvicorn's httptools protocol, with the promises it lacks: a deadline and caps for the request's head.

Also: trailers never become headers and are capped too, exactly one Host, and no version but 1.0 and 1.1. (httptools
itself refuses Content-Length beside Transfer-Encoding, and bare LF.) A client that asks for another protocol, as some
do with every first request, is served in this one.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.server.call import request_id
from gateway.server.log import LOGGER
from gateway.server.outlet import Outlet
from gateway.server.seldom import Seldom
from gateway.server.stall import Stall

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128
VERSIONS: Final = ("1.0", "1.1")
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
    last_descriptor: int = 1_000_000
    _sent_away = Seldom()

    on_lost: Callable[[], None] | None = None

    # The request that is being answered; `cycle` is the one that was read last, and may wait behind it.
    _served: RequestResponseCycle | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_size = 0
    # The parser keeps a header, trailer or chunk size to itself until it is complete, however long it grows.
    _untold = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self._stall = Stall(transport, self.write_timeout_s())
        descriptor: int = transport.get_extra_info("socket").fileno()
        if len(self.connections) > self.max_connections or descriptor > self.last_descriptor:
            self._send_away()
            return
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stall.end()
        if self.on_lost is not None:
            self.on_lost()
        if self._served is not None and self._serving:
            # uvicorn tells only the request that was read last.
            self._served.disconnected = True
            self._served.message_event.set()
        super().connection_lost(exc)
        # uvicorn leaves both: the timer, after a reset, would keep this as long as an idle connection, and the last
        # request refers to us, so that it would wait for the collector.
        self._unset_keepalive_if_required()
        self.cycle = None  # type: ignore[assignment]  # as before the first request
        self._served = None
        self.pipeline.clear()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    @staticmethod
    def write_timeout_s() -> float:
        """How long a client of a new connection may take nothing."""
        return 60

    def cut(self) -> None:
        """End the connection now."""
        # asyncio's own transports cannot bear it once they have ended by themselves.
        if self in self.connections:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is None and self._in_head:
            self._start_head()
        self._untold += len(data)
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.send_400_response("")
        if self._untold > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        # uvicorn does so for any bytes; the rest of a body that nobody wants would keep the connection for ever.
        self._unset_keepalive_if_required()
        self._untold = 0
        self._in_head = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value))
        if not self._in_head:
            return
        if len(self.headers) >= MAX_HEADERS:
            raise HeadError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._in_head = False
        self._untold = self._head_size = 0
        self._stop_timer()
        self._unset_keepalive_if_required()
        version = self.parser.get_http_version()
        hosts = sum(1 for name, _ in self.headers if name == b"host")
        if version not in VERSIONS or hosts > 1 or (hosts == 0 and version == "1.1"):
            raise HeadError
        state = self.scope["state"]
        super().on_headers_complete()
        # uvicorn has made a task, which begins when all that has been read is parsed.
        state["connection"] = self
        state["outlet"] = Outlet(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._untold = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._untold = 0
        self._in_head = True

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        if self._serving and self._served is not None and self._served.response_started:
            # An answer is on its way: a second one in its midst would be taken for a part of it.
            self.transport.abort()
            return
        given = self._refuse(b"400 Bad Request", BAD_REQUEST)
        LOGGER.info("refused a connection: 400 Bad Request", extra={"request_id": given})

    def _feed(self, data: bytes) -> None:
        """The parser takes whatever follows an Upgrade for another protocol, the request's own body too. So it is
        shown the head once more, without that header, which a server may ignore (RFC 9110, section 7.8)."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            method, version = self.parser.get_method(), self.parser.get_http_version().encode("ascii")
            if method == b"CONNECT":
                raise
            head = [b"%s %s HTTP/%s" % (method, self.url, version)]
            head += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(b"\r\n".join(head) + b"\r\n\r\n" + data[stopped.args[0] :])

    def _send_away(self) -> None:
        given = self._refuse(b"503 Service Unavailable", FULL, b"retry-after: 1")
        if count := self._sent_away.tell(self.loop.time()):
            LOGGER.warning("no room for %d connections since the last such line", count, extra={"request_id": given})

    def _refuse(self, status: bytes, body: bytes, *more: bytes) -> str:
        given = request_id(None)
        lines = (
            b"HTTP/1.1 " + status,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            b"x-request-id: " + given.encode("ascii"),
            *more,
        )
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()
        return given

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _serving(self) -> bool:
        return self._served is not None and not self._served.response_complete

    def _grow(self, size: int) -> None:
        self._untold = 0
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
        if not self._in_head or self.transport.is_closing():
            return
        if self._serving:
            # What comes too slowly shall not cost the answer before it.
            self._start_head()
        else:
            self.transport.abort()


def guarded(
    head_timeout_s: float, write_timeout_s: Callable[[], float], max_connections: int, last_descriptor: int
) -> type[GuardedProtocol]:
    """The protocol class for uvicorn, with a deadline for every request's head and for clients that take nothing, and
    room for so many connections, and for none whose descriptor is above the last."""
    limits = {
        "head_timeout_s": head_timeout_s,
        "write_timeout_s": staticmethod(write_timeout_s),
        "max_connections": max_connections,
        "last_descriptor": last_descriptor,
        "_sent_away": Seldom(),
    }
    return type("GuardedProtocol", (GuardedProtocol,), limits)
