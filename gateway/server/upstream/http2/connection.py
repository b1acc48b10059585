"""Sends requests to a backend over one socket, each on a stream of its own, and reads responses as they arrive."""

import asyncio
import math
import ssl
from collections.abc import Callable
from typing import Final

from gateway.server.upstream.http.connect import SocketProtocol
from gateway.server.upstream.http.errors import (
    HttpError,
    HttpProtocolError,
    NoHttp2,
    RemoteDisconnected,
    StaleConnection,
    TLSError,
    Truncated,
    Unprocessed,
)
from gateway.server.upstream.http.socket_poll import poll_closed
from gateway.server.upstream.http.tls import is_certificate_refusal
from gateway.server.upstream.http2.connection_state import HTTP2_TRANSITIONS, Http2Input, Http2State
from gateway.server.upstream.http2.multiplexer import Multiplexer
from gateway.server.upstream.http2.request_head import Http2Request
from gateway.server.upstream.http2.stream_response import WINDOW, StreamResponse

_NO_SOCKET: Final = (Http2State.NEW, Http2State.CLOSED)
_ENDED: Final = (Http2State.FAILED, Http2State.CLOSED)
_USABLE: Final = (Http2State.OPEN, Http2State.DRAINING)
# The beginning of a response of HTTP/1.1, which is no frame.
_HTTP1: Final = b"HTTP/1."
# A backend that has sent nothing, not even for another stream, since a request that was given up after so long may be
# unreachable. Further requests take another connection.
SILENT_S: Final = 5
# A backend that has sent nothing within so many seconds after a PING is unreachable.
PING_ANSWER_S: Final = 20


class Http2Stream:
    """One request and its response, on a connection that others share. `paused`: so many bytes were read that the
    backend should learn of them by `resume`."""

    __slots__ = ("_connection", "_waiter", "arrivals", "begun", "id", "response", "unwritten")

    def __init__(self, connection: "Http2Connection") -> None:
        self._connection = connection
        self._waiter: asyncio.Future[None] | None = None
        self.id = 0
        self.response: StreamResponse
        # When it began, and how often something had arrived on the connection until then.
        self.begun = 0.0
        self.arrivals = 0
        self.unwritten = False

    def send_request(self, request: Http2Request, most: int, ping_s: float | None = None) -> None:
        """Sends the request, whose response may have a body of `most` bytes. What the backend does not take yet of its
        body follows later. After `ping_s` seconds without any byte the backend is asked for a sign of life."""
        self._connection.begin(self, request, most)
        if ping_s is not None:
            self._connection.ask_for_life(ping_s)

    def arrival(self) -> asyncio.Future[None]:
        """Returns a future that completes as soon as something arrives or the stream fails. Raises HttpError when it
        has already failed."""
        if self.response.error is not None:
            raise self.response.error
        self._waiter = self._connection.loop.create_future()
        return self._waiter

    @property
    def paused(self) -> bool:
        return self.response.unacknowledged >= WINDOW // 2

    def resume(self) -> None:
        """Widens the stream's window by what was read."""
        self._connection.acknowledge(self)

    def leave(self) -> None:
        """Ends the stream; one that is not complete is cancelled, and the connection stays."""
        self._connection.leave(self)

    abort = leave

    def wake(self) -> None:
        """Completes the future of `arrival`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Http2Connection(SocketProtocol):
    """Shared by several requests. `since` is when the last of them ended. `on_open`, `on_lost` and `on_idle` are called
    when the socket opens, when it closes, and whenever the last stream has ended."""

    alpn = "h2"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_open: Callable[["Http2Connection"], None],
        on_lost: Callable[["Http2Connection"], None],
        on_idle: Callable[[], None],
    ) -> None:
        self.loop = loop
        self._on_open = on_open
        self._on_lost = on_lost
        self._on_idle = on_idle
        self._multiplexer = Multiplexer()
        self._streams: dict[int, Http2Stream] = {}
        self._error: HttpError | None = None
        self._opened = loop.create_future()
        self._state = Http2State.NEW
        self._unwritten = False
        self._arrivals = 0
        # When the backend's silence is looked at next, what had arrived at the last look, and whether it is asked.
        self._look: asyncio.TimerHandle | None = None
        self._heard = 0
        self._pinged = False
        self.since = math.inf

    # Methods for the pool:

    async def wait_open(self) -> None:
        """Waits for the backend's first SETTINGS. Raises HttpError when it does not speak HTTP/2, or takes no
        request."""
        await self._opened
        if isinstance(self._error, RemoteDisconnected):
            # No request has been sent.
            raise StaleConnection from self._error.__cause__
        if self._error is not None:
            raise self._error
        if not self._multiplexer.available_streams:
            raise Unprocessed

    @property
    def available_streams(self) -> int:
        """The number of further requests that can be begun now. 0 for an idle connection that the backend has closed,
        which the event loop may not yet have processed."""
        if self._state is not Http2State.OPEN or (not self._streams and self._poll.poll(0)):
            return 0
        return self._multiplexer.available_streams

    def abort(self) -> None:
        """Closes the connection at once. Whoever still reads a response gets an error."""
        self._close(Truncated())

    # Methods for its streams:

    def begin(self, stream: Http2Stream, request: Http2Request, most: int) -> None:
        stream.id, stream.response = self._multiplexer.begin(request, most)
        self._streams[stream.id] = stream
        stream.begun, stream.arrivals = self.loop.time(), self._arrivals
        self.since = math.inf
        self._write_bodies()
        stream.unwritten = self._unwritten or self._transport.is_closing()
        self._note_draining()

    def acknowledge(self, stream: Http2Stream) -> None:
        if self._state in _USABLE:
            self._multiplexer.acknowledge(stream.id, stream.response)
            self._write()

    def leave(self, stream: Http2Stream) -> None:
        if self._streams.pop(stream.id, None) is None:
            return
        if self._state in _USABLE:
            cancelled = self._multiplexer.leave(stream.id)
            silent = stream.arrivals == self._arrivals and self.loop.time() - stream.begun > SILENT_S
            if cancelled and silent:
                self._multiplexer.draining = True
            self._write()
        if not self._streams:
            self._become_idle()
        self._note_draining()

    def ask_for_life(self, every_s: float) -> None:
        """Sends a PING after so many seconds without any byte, as long as there are streams, and ends the connection
        when nothing follows."""
        if self._look is None:
            self._heard, self._pinged = self._arrivals, False
            self._look = self.loop.call_later(every_s, self._look_for_life, every_s)

    # Methods for the event loop:

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self._transport = transport
        self._step("opened")
        # With this limit the transport reports every byte that is not sent at once, which shows whether a request has
        # been written in full.
        transport.set_write_buffer_limits(high=1)
        self._poll = poll_closed(transport.get_extra_info("socket").fileno())
        self._on_open(self)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != self.alpn:
            self._fail(NoHttp2())
        else:
            self._write()

    def pause_writing(self) -> None:
        self._unwritten = True

    def resume_writing(self) -> None:
        self._unwritten = False
        for stream in self._streams.values():
            stream.unwritten = False
        self._write_bodies()

    def data_received(self, data: bytes) -> None:
        if self._state is Http2State.FAILED:
            return
        self._arrivals += 1
        try:
            touched = self._multiplexer.feed(data, self.loop.time())
        except HttpProtocolError as error:
            unspoken = self._state is Http2State.OPENING and data.startswith(_HTTP1)
            self._write()
            self._fail(NoHttp2() if unspoken else error)
            return
        if self._multiplexer.settings_received and self._state is Http2State.OPENING:
            self._step("settings")
            self._opened.set_result(None)
            self._become_idle()
        self._note_draining()
        self._write_bodies()
        for stream_id in touched:
            if (stream := self._streams.get(stream_id)) is not None:
                stream.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._state in _NO_SOCKET:
            return
        self._step("lost")
        lost = TLSError() if is_certificate_refusal(exc) else RemoteDisconnected()
        lost.__cause__ = exc
        self._end(lost)
        self._on_lost(self)

    def _look_for_life(self, every_s: float) -> None:
        self._look = None
        if not self._streams or self._state not in _USABLE:
            return
        silent, answered = self._heard == self._arrivals, self._pinged
        if silent and self._pinged:
            self._fail(RemoteDisconnected())
            return
        self._heard, self._pinged = self._arrivals, silent
        wait_s = every_s - PING_ANSWER_S if answered else every_s
        if silent:
            self._multiplexer.ping()
            self._write()
            wait_s = PING_ANSWER_S
        self._look = self.loop.call_later(wait_s, self._look_for_life, every_s)

    def _step(self, given: Http2Input) -> None:
        self._state = HTTP2_TRANSITIONS[self._state][given]

    def _become_idle(self) -> None:
        """Notes that there is no stream."""
        self.since = self.loop.time()
        self._on_idle()

    def _note_draining(self) -> None:
        if self._multiplexer.draining and self._state not in _ENDED:
            self._step("drained")
            if not self._streams:
                self._close(Unprocessed())

    def _close(self, error: HttpError) -> None:
        """Says that the connection ends, and closes it."""
        if self._state in _USABLE:
            self._multiplexer.close()
            self._write()
        self._fail(error)

    def _write(self) -> None:
        if (data := self._multiplexer.output()) and not self._transport.is_closing():
            self._transport.write(data)

    def _write_bodies(self) -> None:
        """Writes a frame of each body in turn, until the windows or the socket are full."""
        while not self._unwritten and self._multiplexer.send_bodies():
            self._write()
        self._write()

    def _fail(self, error: HttpError) -> None:
        """Records the first fault, and closes the socket."""
        self._step("fault")
        self._end(error)
        # asyncio's own transports fail when they are aborted after they have closed by themselves.
        if self._state is Http2State.FAILED:
            self._transport.abort()

    def _end(self, error: HttpError) -> None:
        """Ends every stream with the first fault."""
        if self._error is None:
            self._error = error
        if self._look is not None:
            self._look.cancel()
        if not self._opened.done():
            self._opened.set_result(None)
        for stream in self._streams.values():
            stream.response.fail(self._error_of(stream))
            stream.wake()

    def _error_of(self, stream: Http2Stream) -> HttpError:
        """Returns the error of one stream when the connection ends."""
        assert self._error is not None
        if stream.response.status:
            return Truncated()
        if isinstance(self._error, RemoteDisconnected) and (
            stream.unwritten or not self._multiplexer.is_sent(stream.id)
        ):
            return StaleConnection()
        return self._error
