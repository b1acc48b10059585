"""One SQLite file that the workers of a machine share -> what all of them use, in transactions of some 50 us.

Times are those of CLOCK_MONOTONIC, which all processes of a machine share and which no change of the wall clock moves.
A process may be killed in the midst of a transaction: the journal gives the next one the file as it was before. That is
all the journal has to do, so nothing waits for the disk (synchronous is off). A write-ahead log would halve the time,
but part of it is mapped into memory: whoever cut that file short would end every worker with SIGBUS.

Everything here raises sqlite3.Error or OSError.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.server.holder import lives
from gateway.server.store import MINUTE, Usage, one_more
from gateway.settings import KeySettings

# The event loop waits meanwhile. A transaction takes a thousandth of this, unless its process is kept from running.
BUSY_S: Final = 0.05
PAUSE_S: Final = 0.0001
# "Drgn", and the form of the tables: no other file is ever written to.
APPLICATION: Final = 0x4472676E
VERSION: Final = 1
TABLES: Final = (
    "CREATE TABLE rates (key TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE places (key TEXT, holder TEXT, running INTEGER NOT NULL, PRIMARY KEY (key, holder)) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
OTHERS: Final = "SELECT total(running) FROM places WHERE key = ? AND holder <> ?"


class StoreFile:
    """The file as one process, the holder, sees and writes it. What it held before is forgotten."""

    def __init__(self, path: Path, holder: str) -> None:
        self._path = path
        self._holder = holder
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._prepare()
            self._inode = _inode(path)
        except (sqlite3.Error, OSError):
            self._db.close()
            raise

    def take(self, key: str, own: Usage, limits: KeySettings, now: float) -> Usage:
        """The holder's usage with one more request. Raises GatewayError 429 when that is too much for all."""
        with self._transaction() as run:
            others, due = 0, own.due
            if limits.concurrent_streams is not None:
                others = self._others(run, key, limits.concurrent_streams - own.running)
            if limits.requests_per_minute is not None:
                due = max(due, _due(run, key, now))
            after = one_more(Usage(own.running + others, due), limits, now)
            if limits.concurrent_streams is not None:
                run.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", (key, self._holder, own.running + 1))
            if limits.requests_per_minute is not None:
                run.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, after.due))
        return Usage(own.running + 1, after.due)

    def tell(self, running: Mapping[str, int]) -> None:
        """So many requests the holder now runs, by key."""
        with self._transaction() as run:
            for key, number in running.items():
                if number:
                    run.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", (key, self._holder, number))
                else:
                    run.execute("DELETE FROM places WHERE key = ? AND holder = ?", (key, self._holder))

    def check(self) -> None:
        """Raises OSError when the name belongs to another file, or to none."""
        if _inode(self._path) != self._inode:
            raise OSError("it was replaced by another file")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _prepare(self) -> None:
        self._patiently("PRAGMA synchronous = OFF")
        if self._is_foreign():
            raise sqlite3.DatabaseError("the file is not a store of this version")
        self._patiently("PRAGMA journal_mode = PERSIST")
        with self._transaction() as run:
            # Another worker may have come first.
            if not _tables(run):
                for statement in TABLES:
                    run.execute(statement)
            run.execute("DELETE FROM places WHERE holder = ?", (self._holder,))
            _forget_dead(run)

    def _is_foreign(self) -> bool:
        with self._transaction() as run:
            found = [run.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            return found != [APPLICATION, VERSION] and (found != [0, 0] or _tables(run))

    def _others(self, run: sqlite3.Connection, key: str, room: int) -> int:
        """How many the others run; those who died do so no more."""
        of_others = (key, self._holder)
        found = int(run.execute(OTHERS, of_others).fetchone()[0])
        if found >= room and _forget_dead(run):
            found = int(run.execute(OTHERS, of_others).fetchone()[0])
        return found

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._patiently("BEGIN EXCLUSIVE")
        try:
            yield self._db
        except BaseException:  # whatever ends it, a refusal too: a transaction left open would lock all others out
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _patiently(self, statement: str) -> None:
        """SQLite's own patience is a disk's: it would sleep a millisecond and more at a time."""
        until = 0.0
        while True:
            try:
                self._db.execute(statement)
            except sqlite3.OperationalError as error:
                now = time.monotonic()
                until = until or now + BUSY_S
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or now >= until:
                    raise
                time.sleep(PAUSE_S)
            else:
                return


def _due(run: sqlite3.Connection, key: str, now: float) -> float:
    found = run.execute("SELECT due FROM rates WHERE key = ?", (key,)).fetchone()
    # Later than a minute from now nothing is due: this was written before the machine was started again.
    return float(found[0]) if found and found[0] <= now + MINUTE + 1 else now - MINUTE


def _forget_dead(run: sqlite3.Connection) -> int:
    """How many holders there were that live no more."""
    dead = [row for row in run.execute("SELECT DISTINCT holder FROM places").fetchall() if not lives(row[0])]
    run.executemany("DELETE FROM places WHERE holder = ?", dead)
    return len(dead)


def _tables(run: sqlite3.Connection) -> bool:
    return bool(run.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _inode(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
