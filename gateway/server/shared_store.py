"""A file shared by the workers -> limits that hold for all of them; and, while it fails, for each worker by itself.

Each worker always counts for itself, too. What it knows suffices to refuse, so that the flood of one caller costs the
file little; and it is what holds while the file cannot be used. Then no request is refused for that, and none goes on
unlimited. The file is told absolute numbers, never differences: what was lost on the way is right again with the next.
"""

import sqlite3
from pathlib import Path
from typing import Final

from gateway.server.log import LOGGER
from gateway.server.store import MemoryStore, one_more
from gateway.server.store_file import StoreFile
from gateway.settings import KeySettings

# A store that fails is told so often.
QUIET_S: Final = 60.0
BROKEN: Final = (sqlite3.Error, OSError)


class SharedStore:
    """See Store. `holder` is the name of this process. After a failure no request touches the file until `settle`
    could open it again, so that a file that is locked holds up the event loop once a second at most."""

    def __init__(self, path: Path, holder: str, now: float) -> None:
        self.failures = 0
        self._path = path
        self._holder = holder
        self._own = MemoryStore()
        self._file: StoreFile | None = None
        # What the file says that this worker runs; keys of which it says nothing are left out.
        self._told: dict[str, int] = {}
        self._error: Exception | None = None
        self._warned = False
        self._quiet_until = now
        self.settle(now)

    def limit(self, key: str, limits: KeySettings) -> None:
        """See Store. What is running of a key that had no limit before is told by `settle`."""
        self._own.limit(key, limits)

    def take(self, key: str, now: float) -> None:
        """See Store."""
        before, limits = self._own.usage[key], self._own.limits[key]
        after = one_more(before, limits, now)
        if self._file is not None and _limited(limits):
            try:
                after = self._file.take(key, before, limits, now)
            except BROKEN as error:
                self._fail(error)
            else:
                if limits.concurrent_streams is not None:
                    self._told[key] = after.running
        self._own.usage[key] = after

    def give_back(self, key: str) -> None:
        """See Store."""
        self._own.give_back(key)
        if self._file is not None and key in self._told:
            self._tell(self._file, {key: self._wanted(key)})

    def settle(self, now: float) -> None:
        """See Store. Also finds a file that was removed or replaced, and opens it anew."""
        self._warn(now)
        try:
            if self._file is None:
                self._told.clear()
                self._file = StoreFile(self._path, self._holder)
            self._file.check()
        except BROKEN as error:
            self._fail(error)
            return
        untold = {key: wanted for key in self._own.limits if (wanted := self._wanted(key)) != self._told.get(key, 0)}
        if untold:
            self._tell(self._file, untold)
        if self._warned and self._file is not None:
            self._warned = False
            LOGGER.info("the store %s is used again", self._path)

    def close(self) -> None:
        """See Store. Of a process that has ended, the others forget what it ran."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _wanted(self, key: str) -> int:
        return 0 if self._own.limits[key].concurrent_streams is None else self._own.usage[key].running

    def _tell(self, file: StoreFile, running: dict[str, int]) -> None:
        try:
            file.tell(running)
        except BROKEN as error:
            self._fail(error)
        else:
            self._told = {key: number for key, number in (self._told | running).items() if number}

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        self._error = error
        self.close()

    def _warn(self, now: float) -> None:
        error, self._error = self._error, None
        if error is not None and now >= self._quiet_until:
            self._quiet_until = now + QUIET_S
            self._warned = True
            LOGGER.warning(
                "the store %s cannot be used: %s; until it can, the limits of API keys hold for each worker by itself",
                self._path,
                error,
            )


def _limited(limits: KeySettings) -> bool:
    return limits.requests_per_minute is not None or limits.concurrent_streams is not None
