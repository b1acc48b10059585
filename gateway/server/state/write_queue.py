"""Runs writes in the background, in their order and one at a time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from gateway.server.state.store import StoreUnavailable

MOST: Final = 256
# The time that the writes of the last requests have when the gateway stops.
LAST_S: Final = 1.0

Write: TypeAlias = Callable[[], Awaitable[object]]


class WriteQueue:
    """Holds at most `MOST` writes. A write may raise StoreUnavailable, which is the end of it."""

    def __init__(self) -> None:
        self._writes: deque[Write] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, write: Write) -> bool:
        """Returns False, and drops the write, when the queue is full."""
        if len(self._writes) >= MOST:
            return False
        self._writes.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    async def join(self) -> None:
        """Waits until no write is left."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def aclose(self) -> None:
        """Waits for the writes, but no longer than `LAST_S`, and cancels the others."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=LAST_S)
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        while self._writes:
            try:
                await self._writes.popleft()()
            except StoreUnavailable:
                # The store has counted it.
                continue
