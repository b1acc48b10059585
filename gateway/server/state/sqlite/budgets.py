"""Keeps the reservations of budgets in a store's file, for all processes of a machine.

The table is made where it is first used: files of before have none. Times are those of the wall clock, like the
windows.
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from gateway.server.access.budgets import BudgetName, Window
from gateway.server.state.budget_store import (
    KEPT_S,
    BudgetUse,
    Claim,
    Holding,
    Standing,
    settle_claim,
    use_of,
)
from gateway.server.state.sqlite.file import AT_ONCE, SqliteDatabase
from gateway.server.state.sqlite.limits import MAX_BYTES
from gateway.server.state.store import StoreUnavailable

_TABLE: Final = """CREATE TABLE IF NOT EXISTS budgets (
    key TEXT, name TEXT, start INTEGER, holder TEXT, ends INTEGER NOT NULL, number INTEGER NOT NULL,
    reserved INTEGER NOT NULL, spent INTEGER NOT NULL, stated REAL NOT NULL, short INTEGER NOT NULL,
    PRIMARY KEY (key, name, start, holder)
) WITHOUT ROWID"""
# Ended windows are found without a look at all others.
_ENDS: Final = "CREATE INDEX IF NOT EXISTS budget_ends ON budgets (ends)"
_HELD: Final = (
    "SELECT holder, number, reserved, spent, stated, short FROM budgets WHERE key = ? AND name = ? AND start = ?"
)


class SqliteBudgets:
    """See `BudgetStore`."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self.name = f"sqlite:{path}"
        self.at_once = AT_ONCE
        # A process that begins anew is another one: what the one before had reserved is gone.
        self._holder = secrets.token_hex(8)
        self._numbers = count(1)
        self._clock = clock
        self._database = SqliteDatabase(path, max_bytes)

    async def reserve(self, key: str, claims: Sequence[Claim]) -> list[Standing]:
        """See `BudgetStore`."""
        number = next(self._numbers)

        def reserve(run: sqlite3.Connection) -> list[Standing]:
            now = self._clock()
            run.execute(_TABLE)
            run.execute(_ENDS)
            run.execute("DELETE FROM budgets WHERE ends < ?", (now - KEPT_S,))
            return [self._settle(run, key, claim, number, now) for claim in claims]

        return await self._database.write(reserve)

    async def use(self, key: str, budgets: Sequence[tuple[BudgetName, Window]]) -> list[BudgetUse]:
        """See `BudgetStore`."""

        def read(run: sqlite3.Connection) -> list[BudgetUse]:
            run.execute(_TABLE)
            return [use_of(_read(run, key, name, window).values()) for name, window in budgets]

        return await self._database.write(read)

    async def ping(self) -> None:
        """See `BudgetStore`."""
        await self._database.write(lambda run: None)

    async def aclose(self) -> None:
        """See `BudgetStore`."""
        await self._database.aclose()

    def _settle(self, run: sqlite3.Connection, key: str, claim: Claim, number: int, now: float) -> Standing:
        """Raises StoreUnavailable for a call that was given up, behind which another one was made."""
        place = (key, claim.name, claim.window.start)
        row = (*place, self._holder)
        last = run.execute(
            "SELECT number FROM budgets WHERE key = ? AND name = ? AND start = ? AND holder = ?", row
        ).fetchone()
        if last is not None and last[0] >= number:
            raise StoreUnavailable("slow", "the call was given up")
        others = _read(run, key, claim.name, claim.window)
        others.pop(self._holder, None)
        held, standing = settle_claim(claim, others.values(), now)
        stored = (*row, claim.window.end, number, held.reserved, held.spent, held.stated, held.short)
        run.execute(f"INSERT OR REPLACE INTO budgets VALUES ({', '.join('?' * len(stored))})", stored)
        return standing


def _read(run: sqlite3.Connection, key: str, name: BudgetName, window: Window) -> dict[str, Holding]:
    rows = run.execute(_HELD, (key, name, window.start)).fetchall()
    return {holder: Holding(reserved, spent, stated, bool(short)) for holder, _, reserved, spent, stated, short in rows}
