"""Shares connections to one address between requests, and opens another where the backend allows no more streams."""

import asyncio
import math
from typing import Final

from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.errors import ConnectTimeout, HttpError, RemoteDisconnected
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http2.connection import Http2Connection, Http2Stream
from gateway.server.upstream.http2.multiplexer import DEFAULT_STREAMS

# Less than the usual timeout of servers and the proxies between.
KEEP_S: Final = 15
TICK_S: Final = 1


class _Opening:
    """A connection that is being opened, for as long as a request waits for it."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.waiters: set[asyncio.Future[None]] = set()
        self.task = task
        task.add_done_callback(self._end_waits)

    @property
    def has_room(self) -> bool:
        """Whether a further request may wait for it."""
        return len(self.waiters) < DEFAULT_STREAMS and not self.task.done()

    def _end_waits(self, task: asyncio.Task[None]) -> None:
        error = RemoteDisconnected() if task.cancelled() else task.exception()
        for waiter in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            elif isinstance(error, HttpError):
                # A copy: a raised exception keeps the frames it went through.
                failure = type(error)()
                failure.__cause__ = error.__cause__
                waiter.set_exception(failure)
            else:
                waiter.set_exception(error)


class Http2Pool:
    """`acquire` begins a stream on an open connection, `open` waits for one that is being opened, `release` ends a
    stream, and `close` closes all connections.

    The oldest with room is used first, so that after a burst the others become idle and are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connector: Connector, address: Origin) -> None:
        self._loop = loop
        self._connector = connector
        self._address = address
        self._open: dict[Http2Connection, None] = {}
        self._openings: list[_Opening] = []
        self._timer: asyncio.TimerHandle | None = None
        self._keep = KEEP_S
        self._emptied = asyncio.Event()

    def acquire(self, now: float) -> Http2Stream | None:
        """Returns a stream on an open connection that has room for it, if there is one. It is to be used at once."""
        for connection in self._open:
            if connection.available_streams > 0:
                return Http2Stream(connection)
        return None

    async def open(self, due: float) -> Http2Stream:
        """Returns a stream on a connection that is being opened; the loop's time `due` is the limit. Raises
        HttpError."""
        while True:
            opening = next((one for one in self._openings if one.has_room), None)
            await self._wait(opening or self._begin(), due)
            if (stream := self.acquire(self._loop.time())) is not None:
                return stream

    def release(self, stream: Http2Stream, granted: str = "") -> None:
        """Ends a stream. `granted`, the header Keep-Alive, does not exist in HTTP/2."""
        stream.leave()

    def retire(self) -> None:
        """Closes the connections without streams, and the others soon after their last one."""
        self._keep = 0
        if self._timer is not None:
            self._timer.cancel()
        self._sweep()

    async def close(self) -> None:
        """Closes every connection, also those with streams, and waits until their sockets are closed."""
        if self._timer is not None:
            self._timer.cancel()
        for opening in self._openings:
            opening.task.cancel()
        await asyncio.gather(*(opening.task for opening in self._openings), return_exceptions=True)
        for connection in tuple(self._open):
            connection.abort()
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()

    @property
    def size(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def _begin(self) -> _Opening:
        opening = _Opening(self._loop.create_task(self._connect()))
        self._openings.append(opening)
        return opening

    async def _connect(self) -> None:
        connection = await self._connector.connect(self._address, None, self._connection)
        try:
            await connection.wait_open()
        except BaseException:  # also a cancellation: no request uses it
            connection.abort()
            raise

    async def _wait(self, opening: _Opening, due: float) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        opening.waiters.add(waiter)
        try:
            async with asyncio.timeout_at(due):
                await waiter
        except TimeoutError as error:
            raise ConnectTimeout from error
        finally:
            opening.waiters.discard(waiter)
            if opening in self._openings and (opening.task.done() or not opening.waiters):
                self._openings.remove(opening)
                opening.task.cancel()

    def _connection(self) -> Http2Connection:
        return Http2Connection(self._loop, self._opened, self._lost, self._watch)

    def _opened(self, connection: Http2Connection) -> None:
        self._open[connection] = None

    def _lost(self, connection: Http2Connection) -> None:
        self._open.pop(connection, None)
        self._emptied.set()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        late = self._loop.time() - self._keep
        for connection in [connection for connection in self._open if connection.since <= late]:
            connection.abort()
        if any(connection.since < math.inf for connection in self._open):
            self._watch()
