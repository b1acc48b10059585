"""Runs writes in the background, in their order and one at a time; those that a client waits for at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

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
        self._begun: set[asyncio.Task[StoreUnavailable | None]] = set()

    def add(self, write: Write) -> bool:
        """Returns False, and drops the write, when the queue is full."""
        if len(self._writes) >= MOST:
            return False
        self._writes.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    def begin(self, write: Write) -> "asyncio.Task[StoreUnavailable | None]":
        """Runs a write at once, beside the others. Its result is the failure of the store, if there was one."""
        task = asyncio.create_task(_outcome(write))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return task

    async def join(self) -> None:
        """Waits until no write is left."""
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Waits for the writes, but no longer than `LAST_S`, and cancels the others."""
        if tasks := self._tasks():
            _, late = await asyncio.wait(tasks, timeout=LAST_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _tasks(self) -> Sequence[asyncio.Task[Any]]:
        return [*self._begun] if self._task is None else [self._task, *self._begun]

    async def _run(self) -> None:
        while self._writes:
            await _outcome(self._writes.popleft())


async def _outcome(write: Write) -> StoreUnavailable | None:
    """Returns the failure of the store, which has counted it."""
    try:
        await write()
    except StoreUnavailable as failure:
        return failure
    return None
