"""One socket to a backend: a request goes out, its answer is read as it arrives, and perhaps another one follows."""

import asyncio
import math
import select
from collections.abc import Callable
from typing import Final

from gateway.server.http.errors import HttpError, HungUp, NotHttp, Truncated, Unsent
from gateway.server.http.response import ResponseDecoder

# So much may lie here unread before the backend has to wait.
HIGH_WATER: Final = 64 * 1024


class Connection(asyncio.Protocol):
    """One request at a time. `since` is when the last one was done with. `paused`: so much has arrived unread that
    the backend has to wait, until `resume`. `on_open` and `on_lost` are told once of the socket's beginning and end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_open: Callable[["Connection"], None],
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self._loop = loop
        self._on_open = on_open
        self._on_lost = on_lost
        self.response = ResponseDecoder()
        self._error: HttpError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._asked = False
        self._last = False
        self._unwritten = False
        self.paused = False
        # There is no socket yet.
        self._lost = True
        self.since = -math.inf

    # What the caller does:

    def ask(self, request: bytes, most: int, last: bool = False) -> None:
        """Send a request, whose answer may have a body of `most` bytes. `last`: there will be no other request."""
        self._asked = True
        self._last = last
        self.response.begin(most)
        self._transport.write(request)
        if self._transport.is_closing():
            self._unwritten = True

    def resume(self) -> None:
        """What had arrived was taken from `response`: the backend need not wait any longer."""
        self.paused = False
        self._transport.resume_reading()

    def arrival(self) -> asyncio.Future[None]:
        """Done as soon as something has come, or nothing will; for the one who asked. Raises HttpError when it is known
        that nothing will."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        return self._waiter

    def rest(self, now: float) -> bool:
        """Whether the connection can be kept, now that nobody reads its answer any more. If so, it is kept quiet."""
        self._asked = False
        self.since = now
        busy = self._last or self.paused or self._unwritten or self._transport.is_closing()
        return self.response.reusable and not busy

    def is_quiet(self) -> bool:
        """Whether a kept connection is still open and silent. The event loop may not have come to see yet that the
        backend hung up, or said something unasked: both make the socket readable."""
        return not self._transport.is_closing() and not self._poll.poll(0)

    @property
    def forsaken(self) -> bool:
        """Whether a lost connection ended behind an answer and by the backend's will, asked for another or not."""
        return self._error is None or isinstance(self._error, HungUp)

    def abort(self) -> None:
        """Close at once, whatever is under way. Whoever reads still is told."""
        self._fail(Truncated())
        # asyncio's own transports cannot bear it once they have ended by themselves.
        if not self._lost:
            self._transport.abort()

    def disown(self) -> None:
        """Count as lost, since its opening was cancelled: uvloop then says no more, even of a socket that it had told
        to be open."""
        self.connection_lost(None)

    # What the event loop calls:

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio calls it
        self._transport = transport
        self._lost = False
        # Told of every byte that does not leave at once, we know whether a request has been written in full.
        transport.set_write_buffer_limits(high=1)
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._on_open(self)

    def pause_writing(self) -> None:
        self._unwritten = True

    def resume_writing(self) -> None:
        self._unwritten = False

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._fail(NotHttp())
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
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        unsent = self.since > -math.inf and self._unwritten and not self.response.begun
        # After a fault the end means nothing, least of all that a body without a length is complete.
        if self._error is None:
            try:
                self.response.close(clean=exc is None)
            except HttpError as error:
                lost = Unsent() if unsent else error
                lost.__cause__ = exc
                self._fail(lost)
        self.response.release()
        self._wake()
        self._on_lost(self)

    def _fail(self, error: HttpError) -> None:
        """Only the first fault counts."""
        if self._error is None:
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
