"""Keeps the usage of all workers of a machine in one SQLite file, in transactions of some 50 us.

Times are those of CLOCK_MONOTONIC, which all processes of a machine share and which no change of the wall clock
affects. A process may be killed during a transaction: the journal then gives the next process the file as it was
before. The journal has no other purpose, so nothing waits for the disk (synchronous is off). A write-ahead log would
halve the time, but part of it is mapped into memory: truncating that file would end every worker with SIGBUS.

Every function here raises sqlite3.Error or OSError.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.server.access.rate_limit import MINUTE, KeyUsage, count_request
from gateway.server.process.process_identity import is_alive
from gateway.settings import KeySettings

# The event loop is blocked meanwhile. A transaction takes a thousandth of this, unless its process is not scheduled.
BUSY_S: Final = 0.05
PAUSE_S: Final = 0.0001
# "Drgn", and the version of the tables: the gateway never writes to any other file.
APPLICATION: Final = 0x4472676E
VERSION: Final = 1
TABLES: Final = (
    "CREATE TABLE rates (key TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE places (key TEXT, holder TEXT, running INTEGER NOT NULL, PRIMARY KEY (key, holder)) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
OTHERS: Final = "SELECT total(running) FROM places WHERE key = ? AND holder <> ?"


class RateLimitFile:
    """The file as one process, the holder, reads and writes it. Opening it discards the holder's earlier entries."""

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

    def acquire(self, key: str, own: KeyUsage, limits: KeySettings, now: float) -> KeyUsage:
        """Returns the holder's usage with one more request. Raises GatewayError 429 when all processes together exceed
        a limit."""
        with self._transaction() as run:
            others, due = 0, own.due
            if limits.concurrent_streams is not None:
                others = self._others(run, key, limits.concurrent_streams - own.running)
            if limits.requests_per_minute is not None:
                due = max(due, _due(run, key, now))
            after = count_request(KeyUsage(own.running + others, due), limits, now)
            if limits.concurrent_streams is not None:
                run.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", (key, self._holder, own.running + 1))
            if limits.requests_per_minute is not None:
                run.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, after.due))
        return KeyUsage(own.running + 1, after.due)

    def write(self, running: Mapping[str, int]) -> None:
        """Writes the number of the holder's running requests, by key."""
        with self._transaction() as run:
            for key, number in running.items():
                if number:
                    run.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", (key, self._holder, number))
                else:
                    run.execute("DELETE FROM places WHERE key = ? AND holder = ?", (key, self._holder))

    def check(self) -> None:
        """Raises OSError when the path names another file or none."""
        if _inode(self._path) != self._inode:
            raise OSError("it was replaced by another file")

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def _prepare(self) -> None:
        self._patiently("PRAGMA synchronous = OFF")
        if self._is_foreign():
            raise sqlite3.DatabaseError("the file is not a store of this version")
        self._patiently("PRAGMA journal_mode = PERSIST")
        with self._transaction() as run:
            # Another worker may have created the tables first.
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
        """Counts the running requests of the other processes; those of dead processes do not count."""
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
        except BaseException:  # any exception, a refusal too: an open transaction would lock out all other processes
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _patiently(self, statement: str) -> None:
        """Retries while the file is locked. SQLite's own busy handler is made for disks: it sleeps a millisecond and
        more at a time."""
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
    # No due time is later than a minute from now: such a value was written before the machine was restarted.
    return float(found[0]) if found and found[0] <= now + MINUTE + 1 else now - MINUTE


def _forget_dead(run: sqlite3.Connection) -> int:
    """Deletes the entries of dead processes and returns the number of these processes."""
    dead = [row for row in run.execute("SELECT DISTINCT holder FROM places").fetchall() if not is_alive(row[0])]
    run.executemany("DELETE FROM places WHERE holder = ?", dead)
    return len(dead)


def _tables(run: sqlite3.Connection) -> bool:
    return bool(run.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _inode(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
