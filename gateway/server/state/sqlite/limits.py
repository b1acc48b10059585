"""Counts the usage of API keys in a store's file, for all processes of a machine.

Due times are those of CLOCK_MONOTONIC, which all processes of a machine share and which no change of the wall clock
affects. The running requests of a dead process are discarded when they would cause a refusal.
"""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.server.access.rate_limit import MINUTE, Grant, KeyUsage, grant
from gateway.server.process.process_identity import is_alive
from gateway.server.state.sqlite.database import SqliteDatabase
from gateway.settings import KeySettings

# Counts need little room; a file that also holds entries has the larger bound of these.
MAX_BYTES: Final = 2**20
_OTHERS: Final = "SELECT total(running) FROM places WHERE key = ? AND holder <> ?"


class SqliteLimits:
    """See `LimitStore`. `holder` is the name of this process."""

    def __init__(self, path: Path, holder: str, max_bytes: int = MAX_BYTES) -> None:
        self.name = f"sqlite:{path}"
        self._holder = holder
        self._database = SqliteDatabase(path, max_bytes)

    async def take(self, key: str, limits: KeySettings, running: int, wanted: int) -> Grant:
        """See `LimitStore`."""

        def take(run: sqlite3.Connection) -> Grant:
            now = time.monotonic()
            used = running
            if limits.concurrent_streams is not None:
                used += self._others(run, key, limits.concurrent_streams - running - wanted)
            granted = grant(KeyUsage(used, _due(run, key, now)), limits, wanted, now)
            if granted.admitted and limits.concurrent_streams is not None:
                self._state(run, key, running + granted.admitted)
            if granted.admitted and limits.requests_per_minute is not None:
                run.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, now + granted.due_s))
            return granted

        return await self._database.write(take)

    async def state_running(self, running: Mapping[str, int]) -> None:
        """See `LimitStore`."""

        def state(run: sqlite3.Connection) -> None:
            for key, number in running.items():
                self._state(run, key, number)

        await self._database.write(state)

    async def ping(self) -> None:
        """See `LimitStore`. Also discards the numbers of dead processes."""
        await self._database.write(_discard_dead)

    async def aclose(self) -> None:
        """See `LimitStore`."""
        await self._database.aclose()

    def _state(self, run: sqlite3.Connection, key: str, number: int) -> None:
        if number:
            run.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", (key, self._holder, number))
        else:
            run.execute("DELETE FROM places WHERE key = ? AND holder = ?", (key, self._holder))

    def _others(self, run: sqlite3.Connection, key: str, room: int) -> int:
        """Counts the running requests of the other processes; those of dead processes do not count."""
        of_others = (key, self._holder)
        found = int(run.execute(_OTHERS, of_others).fetchone()[0])
        if found > room and _discard_dead(run):
            found = int(run.execute(_OTHERS, of_others).fetchone()[0])
        return found


def _due(run: sqlite3.Connection, key: str, now: float) -> float:
    found = run.execute("SELECT due FROM rates WHERE key = ?", (key,)).fetchone()
    # No due time is later than a minute from now: such a value was written before the machine was restarted.
    return float(found[0]) if found and found[0] <= now + MINUTE + 1 else now - MINUTE


def _discard_dead(run: sqlite3.Connection) -> int:
    """Deletes the numbers of dead processes and returns how many processes these are."""
    dead = [row for row in run.execute("SELECT DISTINCT holder FROM places").fetchall() if not is_alive(row[0])]
    run.executemany("DELETE FROM places WHERE holder = ?", dead)
    return len(dead)
