"""Keeps rate limits in a file that all workers share, and per worker while the file fails.

Each worker always keeps its own counts, too. They suffice to refuse requests, so that a flood of one caller's requests
causes few accesses to the file; and they hold while the file is unusable. A failing file then neither refuses a request
nor lifts a limit. The workers write absolute numbers, never differences: the next write corrects a lost one.
"""

import sqlite3
from pathlib import Path
from typing import Final

from gateway.server.access.rate_limit import MemoryRateLimits, count_request
from gateway.server.state.rate_limit_file import RateLimitFile
from gateway.server.telemetry.log import LOGGER
from gateway.settings import KeySettings

# Minimum time between two warnings about a failing store.
QUIET_S: Final = 60.0
BROKEN: Final = (sqlite3.Error, OSError)


class SharedRateLimits:
    """See `RateLimitStore`. `holder` is the name of this process. After a failure no request accesses the file until
    `settle` has opened it again, so that a locked file blocks the event loop once a second at most."""

    def __init__(self, path: Path, holder: str, now: float) -> None:
        self.failures = 0
        self._path = path
        self._holder = holder
        self._own = MemoryRateLimits()
        self._file: RateLimitFile | None = None
        # The running requests of this worker as the file states them; keys without an entry in the file are left out.
        self._written: dict[str, int] = {}
        self._error: Exception | None = None
        self._warned = False
        self._quiet_until = now
        self.settle(now)

    def limit(self, key: str, limits: KeySettings) -> None:
        """See `RateLimitStore`. `settle` writes the running requests of a key that had no limit before."""
        self._own.limit(key, limits)

    def acquire(self, key: str, now: float) -> None:
        """See `RateLimitStore`."""
        before, limits = self._own.usage[key], self._own.limits[key]
        after = count_request(before, limits, now)
        if self._file is not None and _limited(limits):
            try:
                after = self._file.acquire(key, before, limits, now)
            except BROKEN as error:
                self._fail(error)
            else:
                if limits.concurrent_streams is not None:
                    self._written[key] = after.running
        self._own.usage[key] = after

    def release(self, key: str) -> None:
        """See `RateLimitStore`."""
        self._own.release(key)
        if self._file is not None and key in self._written:
            self._write(self._file, {key: self._wanted(key)})

    def settle(self, now: float) -> None:
        """See `RateLimitStore`. Also detects a removed or replaced file, and opens it again."""
        self._warn(now)
        try:
            if self._file is None:
                self._written.clear()
                self._file = RateLimitFile(self._path, self._holder)
            self._file.check()
        except BROKEN as error:
            self._fail(error)
            return
        unwritten = {
            key: wanted for key in self._own.limits if (wanted := self._wanted(key)) != self._written.get(key, 0)
        }
        if unwritten:
            self._write(self._file, unwritten)
        if self._warned and self._file is not None:
            self._warned = False
            LOGGER.info("the store %s is used again", self._path)

    def close(self) -> None:
        """See `RateLimitStore`. Other processes discard the running requests of an ended process."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _wanted(self, key: str) -> int:
        return 0 if self._own.limits[key].concurrent_streams is None else self._own.usage[key].running

    def _write(self, file: RateLimitFile, running: dict[str, int]) -> None:
        try:
            file.write(running)
        except BROKEN as error:
            self._fail(error)
        else:
            self._written = {key: number for key, number in (self._written | running).items() if number}

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
                "the store %s cannot be used: %s; until then, each worker counts the limits of API keys by itself",
                self._path,
                error,
            )


def _limited(limits: KeySettings) -> bool:
    return limits.requests_per_minute is not None or limits.concurrent_streams is not None
