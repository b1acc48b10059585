"""Keeps connections to one address for later requests, as long as they are usable."""

import asyncio
import math
import re
from typing import Final

from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http1.backend_connection import BackendConnection

# Less than the usual timeout of servers and the proxies between.
KEEP_S: Final = 15
TICK_S: Final = 1
# A server that closes so soon a connection it had promised to keep would do so again, possibly during a request; so for
# a while none of its connections is kept.
SHORT_LIVED_S: Final = 1
KEEP_ALIVE_BACKOFF_S: Final = 60
_TIMEOUT: Final = re.compile(r"timeout\s*=\s*(\d{1,6})", re.IGNORECASE)


class ConnectionPool:
    """`acquire` and `open` lend a connection that is open, or a new one; `release` takes it back, `close` closes all.

    The youngest is lent first, so that after a burst the others age and are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connector: Connector, address: Origin) -> None:
        self._loop = loop
        self._connector = connector
        self._address = address
        self._open: set[BackendConnection] = set()
        # The time until which each can be lent.
        self._idle: dict[BackendConnection, float] = {}
        self._backoff_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    def acquire(self, now: float) -> BackendConnection | None:
        """Returns an open and silent connection, if there is one."""
        while self._idle:
            connection, until = self._idle.popitem()
            if not connection.is_quiet():
                self._suspect(connection)
            elif now < until:
                return connection
            connection.abort()
        return None

    async def open(self, due: float) -> BackendConnection:
        """Returns a new connection; the loop's time `due` is the limit for opening it. Raises HttpError."""
        return await self._connector.connect(self._address, due, self._connection)

    def release(self, connection: BackendConnection, granted: str = "") -> None:
        """Keeps a connection for the next request, or closes it. `granted` is the response's Keep-Alive header."""
        now = self._loop.time()
        keep = _seconds(granted) if granted else KEEP_S
        if not connection.become_idle(now) or keep <= 0 or now < self._backoff_until:
            connection.abort()
            return
        self._idle[connection] = now + keep
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._sweep)

    def retire(self) -> None:
        """Closes the idle connections, and each lent one when it is released."""
        self._backoff_until = math.inf
        for connection in tuple(self._idle):
            connection.abort()

    async def close(self) -> None:
        """Closes every connection, also the lent ones, and waits until their sockets are closed."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in tuple(self._open):
            connection.abort()
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()

    @property
    def size(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def _connection(self) -> BackendConnection:
        return BackendConnection(self._loop, self._open.add, self._lost)

    def _lost(self, connection: BackendConnection) -> None:
        self._open.discard(connection)
        self._emptied.set()
        self._idle.pop(connection, None)
        if connection.forsaken:
            self._suspect(connection)

    def _suspect(self, connection: BackendConnection) -> None:
        now = self._loop.time()
        if now - connection.since < SHORT_LIVED_S:
            self._backoff_until = max(self._backoff_until, now + KEEP_ALIVE_BACKOFF_S)

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        for connection in [connection for connection, until in self._idle.items() if until <= now]:
            del self._idle[connection]
            connection.abort()
        if self._idle:
            self._timer = self._loop.call_later(TICK_S, self._sweep)


def _seconds(granted: str) -> float:
    """Returns the server's keep-alive timeout in seconds, less one second for the network."""
    found = _TIMEOUT.search(granted)
    return min(KEEP_S, int(found[1]) - 1) if found else KEEP_S
