"""Connections to one address that have served a request -> connections for the next ones, as long as they are sound."""

import asyncio
import re
from typing import Final

from gateway.server.http.connection import Connection

# Less than what servers and the boxes between usually grant.
KEEP_S: Final = 15
TICK_S: Final = 1
# A server that hangs up so soon on a connection it had promised to keep would do so again, some day just while a
# request is on its way; so for a while none of its connections is kept.
HASTY_S: Final = 1
SHY_S: Final = 60
_TIMEOUT: Final = re.compile(r"timeout\s*=\s*(\d{1,6})", re.IGNORECASE)


class Pool:
    """`connection` makes one that is to be opened, `take` and `give` lend those that are open, `close` ends them all.

    The youngest is lent first, so that after a burst the others grow old and are closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[Connection] = set()
        # Until when it can be lent.
        self._idle: dict[Connection, float] = {}
        self._shy_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    def connection(self) -> Connection:
        """A protocol for a new socket."""
        return Connection(self._loop, self._open.add, self._lost)

    def take(self, now: float) -> Connection | None:
        """A connection that is open and silent, if there is one."""
        while self._idle:
            connection, until = self._idle.popitem()
            if not connection.is_quiet():
                self._doubt(connection)
            elif now < until:
                return connection
            connection.abort()
        return None

    def give(self, connection: Connection, granted: str = "") -> None:
        """Keep a connection for the next request, or close it. `granted` is the answer's Keep-Alive header."""
        now = self._loop.time()
        keep = _seconds(granted) if granted else KEEP_S
        if not connection.rest(now) or keep <= 0 or now < self._shy_until:
            connection.abort()
            return
        self._idle[connection] = now + keep
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._sweep)

    async def close(self) -> None:
        """Close every connection, also those that are lent, and wait until their sockets are gone."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in tuple(self._open):
            connection.abort()
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()

    @property
    def size(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._emptied.set()
        self._idle.pop(connection, None)
        if connection.forsaken:
            self._doubt(connection)

    def _doubt(self, connection: Connection) -> None:
        now = self._loop.time()
        if now - connection.since < HASTY_S:
            self._shy_until = now + SHY_S

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        for connection in [connection for connection, until in self._idle.items() if until <= now]:
            del self._idle[connection]
            connection.abort()
        if self._idle:
            self._timer = self._loop.call_later(TICK_S, self._sweep)


def _seconds(granted: str) -> float:
    """How long the server says it waits, less a second for the way there."""
    found = _TIMEOUT.search(granted)
    return min(KEEP_S, int(found[1]) - 1) if found else KEEP_S
