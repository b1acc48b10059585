"""Counts the usage of API keys in a store's file, for all processes of a machine.

Due times are those of CLOCK_MONOTONIC, which all processes of a machine share and which no change of the wall clock
affects. The running requests of a dead process are discarded when they would cause a refusal. For a key with a rate,
`counted` has the number of requests of each process that the due time contains.
"""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.server.access.rate_limit import MINUTE, Grant, KeyUsage, charge, grant
from gateway.server.state.limit_store import NONE_UNCONFIRMED, Unconfirmed
from gateway.server.state.process_identity import is_alive
from gateway.server.state.sqlite.file import AT_ONCE, SqliteDatabase
from gateway.server.state.store import StoreUnavailable
from gateway.settings import KeySettings

# Counts need little room; a file that also holds entries has the larger bound of these.
MAX_BYTES: Final = 2**20
_OTHERS: Final = "SELECT total(running) FROM places WHERE key = ? AND holder <> ?"


class SqliteLimits:
    """See `LimitStore`. `holder` is the name of this process."""

    def __init__(self, path: Path, holder: str, max_bytes: int = MAX_BYTES) -> None:
        self.name = f"sqlite:{path}"
        self.at_once = AT_ONCE
        self._holder = holder
        self._database = SqliteDatabase(path, max_bytes)
        # By key, how many requests the last answer has confirmed; above all numbers of earlier objects of this process.
        self._first = time.monotonic_ns()
        self._confirmed: dict[str, int] = {}

    async def take(
        self, key: str, limits: KeySettings, running: int, wanted: int, unconfirmed: Unconfirmed = NONE_UNCONFIRMED
    ) -> Grant:
        """See `LimitStore`."""
        confirmed = self._confirmed.get(key, self._first)
        total = confirmed + unconfirmed.requests

        def take(run: sqlite3.Connection) -> Grant:
            now = time.monotonic()
            used = running
            if limits.concurrent_streams is not None:
                used += self._others(run, key, limits.concurrent_streams - running - wanted)
            due, per_minute = _due(run, key, now), limits.requests_per_minute
            if per_minute is not None:
                uncounted = min(total - self._counted(run, key, confirmed, total), unconfirmed.counting)
                if uncounted > 0:
                    due = charge(due, per_minute, uncounted, now + unconfirmed.due_s, now)
            granted = grant(KeyUsage(used, due), limits, wanted, now)
            if granted.admitted and limits.concurrent_streams is not None:
                self._state(run, key, running + granted.admitted)
            if per_minute is not None and total + granted.admitted > confirmed:
                run.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, now + granted.due_s))
                counted = (key, self._holder, total + granted.admitted)
                run.execute("INSERT OR REPLACE INTO counted VALUES (?, ?, ?)", counted)
            return granted

        granted = await self._database.write(take)
        self._confirmed[key] = total + granted.admitted
        return granted

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

    def _counted(self, run: sqlite3.Connection, key: str, confirmed: int, total: int) -> int:
        """Returns how many requests of this process are counted already. Raises StoreUnavailable when this call was
        given up, and a later one has counted what it wanted."""
        place = (key, self._holder)
        found = run.execute("SELECT total FROM counted WHERE key = ? AND holder = ?", place).fetchone()
        if found is None:
            _discard_dead(run)
            return confirmed
        if found[0] > total:
            raise StoreUnavailable("slow", "the call was given up")
        return max(confirmed, int(found[0]))

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
    holders = run.execute("SELECT holder FROM places UNION SELECT holder FROM counted").fetchall()
    dead = [row for row in holders if not is_alive(row[0])]
    for table in ("places", "counted"):
        run.executemany(f"DELETE FROM {table} WHERE holder = ?", dead)
    return len(dead)
