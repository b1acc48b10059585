"""Measures how long a store is waited for, and ends what waits too long.

Only the time of the store counts. While the event loop is busy with other work, a reply may wait in its socket; so the
time is counted in steps, and one that the loop reaches late counts as one. Between two steps the loop reads its
sockets: a deadline never passes before the loop has looked for the reply as often as the deadline has steps.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

STEP_S: Final = 0.001


class _Wait:
    """What waits: its limit, since when, and whether each answer of the store begins its time anew."""

    __slots__ = ("in_line", "limit", "since", "within_s")

    def __init__(self, limit: asyncio.Timeout, since: float, within_s: float, in_line: bool) -> None:
        self.limit = limit
        self.since = since
        self.within_s = within_s
        self.in_line = in_line


class StoreClock:
    """`now` grows only while something waits: seconds, in whole steps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._answered = 0.0
        self._waits: set[_Wait] = set()
        self._ticked = 0.0
        self._ticks = False

    @asynccontextmanager
    async def limit(self, within_s: float, in_line: bool = False) -> AsyncIterator[None]:
        """Ends the block after `within_s` seconds of the store's time. One that waits `in_line` behind other operations
        is ended when none of them has had an answer for so long. Raises TimeoutError."""
        async with asyncio.timeout(None) as limit:
            wait = _Wait(limit, self.now, within_s, in_line)
            self._waits.add(wait)
            if not self._ticks:
                self._ticks = True
                self._schedule()
            try:
                yield
            finally:
                self._waits.discard(wait)

    def answered(self) -> None:
        """The store has answered an operation."""
        self._answered = self.now

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticked = loop.time()
        loop.call_later(STEP_S, self._tick)

    def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        self.now += min(now - self._ticked, STEP_S)
        late = [wait for wait in self._waits if self.now - self._began(wait) >= wait.within_s]
        self._waits.difference_update(late)
        for wait in late:
            wait.limit.reschedule(now)
        self._ticks = bool(self._waits)
        if self._ticks:
            self._schedule()

    def _began(self, wait: _Wait) -> float:
        return max(wait.since, self._answered) if wait.in_line else wait.since
