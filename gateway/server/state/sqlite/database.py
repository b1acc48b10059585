"""Runs work on a store's file without holding up the event loop.

Small work is done at once, in some 40 to 200 us. Large work, and work that finds the file locked, is done in a thread,
so that the event loop neither copies much nor waits for another process.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from gateway.server.state.sqlite.file import SqliteFile
from gateway.server.state.store import StoreUnavailable

# How long the thread waits for other processes.
PATIENCE_S: Final = 0.2
# There is one thread: what does not wait for it is done at once.
AT_ONCE: Final = 1

T = TypeVar("T")


class SqliteDatabase:
    """The file as one process uses it; `max_bytes` bounds its entries."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._near = SqliteFile(path, 0, max_bytes)
        self._far = SqliteFile(path, PATIENCE_S, max_bytes)
        self._thread = ThreadPoolExecutor(AT_ONCE, "state")

    async def read(self, work: Callable[[sqlite3.Connection], T], large: bool = False) -> T:
        """Returns what `work` reads in one transaction. Raises StoreUnavailable."""
        return await self._run(work, large, writes=False)

    async def write(self, work: Callable[[sqlite3.Connection], T], large: bool = False) -> T:
        """Returns what `work` returns after its changes, in one transaction; it may run again, after a first try that
        found the file locked. Raises StoreUnavailable, and then changes nothing."""
        return await self._run(work, large, writes=True)

    async def aclose(self) -> None:
        """Closes the file."""
        await asyncio.to_thread(self._thread.shutdown)
        self._near.close()
        self._far.close()

    async def _run(self, work: Callable[[sqlite3.Connection], T], large: bool, writes: bool) -> T:
        if not large:
            try:
                return self._near.run(work, writes)
            except StoreUnavailable as failure:
                if failure.reason != "slow":
                    raise
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._far.run, work, writes)
