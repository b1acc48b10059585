"""Sends requests to a backend over one socket, one at a time, and reads each response as it arrives."""

import asyncio
import math
from collections.abc import Callable
from typing import Final

from gateway.server.upstream.http.connect import SocketProtocol
from gateway.server.upstream.http.errors import (
    HttpError,
    HttpProtocolError,
    RemoteDisconnected,
    StaleConnection,
    TLSError,
    Truncated,
)
from gateway.server.upstream.http.socket_poll import poll_received
from gateway.server.upstream.http.tls import is_certificate_refusal
from gateway.server.upstream.http1.backend_connection_state import ACTIVE, BACKEND_TRANSITIONS, BackendState
from gateway.server.upstream.http1.response_decoder import ResponseDecoder

# The number of unread bytes after which the connection stops reading from the backend.
HIGH_WATER: Final = 64 * 1024
_NO_SOCKET: Final = (BackendState.NEW, BackendState.CLOSED)


class BackendConnection(SocketProtocol):
    """Serves one request at a time. `since` is when the last one ended. `paused`: so many bytes are unread that reading
    from the backend stops until `resume`. `on_open` and `on_lost` are called once, when the socket opens and closes."""

    alpn = "http/1.1"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_open: Callable[["BackendConnection"], None],
        on_lost: Callable[["BackendConnection"], None],
    ) -> None:
        self._loop = loop
        self._on_open = on_open
        self._on_lost = on_lost
        self.response = ResponseDecoder()
        self._error: HttpError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._state = BackendState.NEW
        self._last = False
        self._unwritten = False
        self._writable: asyncio.Future[None] | None = None
        self.paused = False
        self.since = -math.inf

    # Methods for the transport, the connector and the pool:

    def send_request(self, request: bytes, most: int, last: bool = False) -> None:
        """Sends a request, whose response may have a body of `most` bytes. `last`: no other request will follow. On a
        connection that has failed nothing is sent, and `arrival` raises its fault."""
        self._state = BACKEND_TRANSITIONS[self._state]["request"]
        self._last = last
        self.response.begin(most)
        if self._state is ACTIVE:
            self._transport.write(request)
        if self._transport.is_closing():
            self._unwritten = True

    async def write(self, data: bytes) -> None:
        """Sends more of the request, and waits until all of it is with the system. On a connection that has failed
        nothing is sent."""
        if self._state is not ACTIVE or self._transport.is_closing():
            return
        self._transport.write(data)
        if self._unwritten:
            self._writable = self._loop.create_future()
            await self._writable

    def resume(self) -> None:
        """Reads from the backend again, after the caller has taken the received bytes from `response`."""
        self.paused = False
        self._transport.resume_reading()

    def arrival(self) -> asyncio.Future[None]:
        """Returns a future that completes as soon as bytes arrive or the connection fails; for the caller that sent the
        request. Raises HttpError when the connection has already failed."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        return self._waiter

    def become_idle(self, now: float) -> bool:
        """Returns whether the connection can be kept, now that its response is no longer read. A kept connection must
        stay silent."""
        self.since = now
        busy = self._last or self.paused or self._unwritten or self._transport.is_closing()
        if busy or not self.response.reusable:
            return False
        self._state = BACKEND_TRANSITIONS[self._state]["released"]
        return True

    def is_quiet(self) -> bool:
        """Returns whether a kept connection is still open and silent. The event loop may not yet have processed the
        backend's close or unsolicited bytes: both make the socket readable."""
        return not self._transport.is_closing() and not self._poll.poll(0)

    @property
    def forsaken(self) -> bool:
        """Whether the backend closed a lost connection after a response, with or without a further request on it."""
        return self._error is None or isinstance(self._error, RemoteDisconnected)

    def abort(self) -> None:
        """Closes the connection at once, whatever is in progress. A caller that is still reading gets an error."""
        self._fail(Truncated())
        # asyncio's own transports fail when they are aborted after they have closed by themselves.
        if self._state is BackendState.FAILED:
            self._transport.abort()

    # Methods for the event loop:

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self._transport = transport
        self._state = BACKEND_TRANSITIONS[self._state]["opened"]
        # With this limit the transport reports every byte that is not sent at once, which shows whether a request has
        # been written in full.
        transport.set_write_buffer_limits(high=1)
        self._poll = poll_received(transport.get_extra_info("socket").fileno())
        self._on_open(self)

    def pause_writing(self) -> None:
        self._unwritten = True

    def resume_writing(self) -> None:
        self._unwritten = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        if self._state is not ACTIVE:
            self._fail(HttpProtocolError())
            self._transport.abort()
            return
        response = self.response
        try:
            response.feed(data)
        except HttpError as error:
            self._fail(error)
            self._transport.abort()
            return
        if response.fed - response.taken > HIGH_WATER and response.waiting and not self.paused:
            self.paused = True
            self._transport.pause_reading()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._state in _NO_SOCKET:
            return
        self._state = BACKEND_TRANSITIONS[self._state]["lost"]
        unsent = self.since > -math.inf and self._unwritten and not self.response.begun
        # After a fault, the end of the connection does not prove that a body without a length is complete.
        if self._error is None:
            try:
                self.response.close(clean=exc is None)
            except HttpError as error:
                refused = is_certificate_refusal(exc)
                lost = TLSError() if refused else StaleConnection() if unsent else error
                lost.__cause__ = exc
                self._fail(lost)
        self.response.release()
        self._go_on()
        self._wake()
        self._on_lost(self)

    def _fail(self, error: HttpError) -> None:
        """Records the first fault; later ones do not count."""
        self._state = BACKEND_TRANSITIONS[self._state]["fault"]
        if self._error is None:
            self._error = error
            self._wake()

    def _go_on(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
