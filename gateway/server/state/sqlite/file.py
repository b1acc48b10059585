"""Runs transactions on a store's file, which any other process may lock, remove, replace or damage meanwhile.

A process may be killed during a transaction: the journal then gives the next process the file as it was before. The
journal has no other purpose, so nothing waits for the disk (synchronous is off), and it is emptied after each
transaction (journal_mode TRUNCATE) with the pages overwritten (secure_delete), so that nothing deleted stays in either
file. A write-ahead log would be faster, but part of it is mapped into memory: truncating that file would end every
worker with SIGBUS.

Small work is done at once, in some 40 to 200 us. Large work, and work that finds the file locked, is done in a thread,
so that the event loop neither copies much nor waits for another process.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.state.sqlite.tables import HEADER, PAGE, create_tables, is_empty, is_ours
from gateway.server.state.store import Failure, StoreUnavailable

PAUSE_S: Final = 0.0002
_READ: Final = "BEGIN"
# What stops writes, but no reads.
_FULL: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_READONLY)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

# How long the thread waits for other processes.
PATIENCE_S: Final = 0.2
# There is one thread: what does not wait for it is done at once.
AT_ONCE: Final = 1

T = TypeVar("T")


class SqliteFile:
    """One connection to the file. It waits `patience_s` for other processes, and connects when it is first used.

    A file that was removed or replaced is opened again; a damaged one, which was ours before, begins anew.
    `max_bytes` bounds the file: about so many bytes of entries fit into it.
    """

    def __init__(self, path: Path, patience_s: float, max_bytes: int) -> None:
        self._path = path
        self._patience_s = patience_s
        # Half of a page is lost with each entry at worst, and the indexes take some.
        self._max_pages = 2 * max_bytes // PAGE + 64
        self._db: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None

    def run(self, work: Callable[[sqlite3.Connection], T], writes: bool) -> T:
        """Returns the result of `work` in one transaction; when it raises, none of its changes is made. Raises
        StoreUnavailable."""
        try:
            with _transaction(self._connection(), "BEGIN IMMEDIATE" if writes else _READ, self._patience_s) as run:
                return work(run)
        except sqlite3.Error as error:
            failure = _failure(error)
            if failure.reason == "invalid":
                self._discard()
            if failure.reason in ("invalid", "down"):
                self.close()
            raise failure from error
        except OSError as error:
            self.close()
            raise StoreUnavailable("down", error.strerror or "the file cannot be used") from error

    def close(self) -> None:
        """Closes the connection; the next use opens another one."""
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _connection(self) -> sqlite3.Connection:
        if self._db is not None:
            try:
                if _inode(self._path) == self._inode:
                    return self._db
            except FileNotFoundError:
                pass
            self.close()
        self._db = self._opened()
        return self._db

    def _opened(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite itself would create it readable by others. The journal gets the permissions of the file.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._inode = None
        inode = _inode(self._path)
        if is_foreign(self._path):
            raise StoreUnavailable("down", "the file is not a store of this version")
        # From here on, damage is that of a file of ours.
        self._inode = inode
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db)
        except BaseException:  # any exception: a connection left open would keep its locks
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        for pragma in ("synchronous = OFF", "secure_delete = ON", f"max_page_count = {self._max_pages}"):
            _patiently(db, f"PRAGMA {pragma}", self._patience_s)
        _patiently(db, "PRAGMA journal_mode = TRUNCATE", self._patience_s)
        with _transaction(db, "BEGIN IMMEDIATE", self._patience_s):
            # Another worker may have created the tables first.
            if is_empty(db):
                create_tables(db)

    def _discard(self) -> None:
        """Removes the damaged file, if it is still the one that was opened, so that the next use begins anew."""
        try:
            if self._inode is None or _inode(self._path) != self._inode:
                return
            self._path.unlink()
        except OSError:
            return
        LOGGER.warning("the store %s was damaged; it begins anew", self._path)


class SqliteDatabase:
    """The file as one process uses it; `max_bytes` bounds its entries."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._near = SqliteFile(path, 0, max_bytes)
        self._far = SqliteFile(path, PATIENCE_S, max_bytes)
        self._thread = ThreadPoolExecutor(AT_ONCE, "state")

    async def read(self, work: Callable[[sqlite3.Connection], T], large: bool = False) -> T:
        """Returns the result of `work`, which reads in one transaction. Raises StoreUnavailable."""
        return await self._run(work, large, writes=False)

    async def write(self, work: Callable[[sqlite3.Connection], T], large: bool = False) -> T:
        """Returns the result of `work`, which makes its changes in one transaction; it may run again, after a first try
        that found the file locked. Raises StoreUnavailable, and then changes nothing."""
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


def is_foreign(path: Path) -> bool:
    """Returns whether there is a file with content that is no store of this version. A damaged store is not foreign.
    Raises OSError."""
    with path.open("rb") as file:
        header = file.read(HEADER)
    return bool(header) and not is_ours(header)


def check_file(path: Path) -> None:
    """Raises SettingsError for a file of another program or of another version, and for one that cannot be read."""
    try:
        if not is_foreign(path):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise SettingsError(f"state.store: {path} cannot be read: {error.strerror}") from None
    raise SettingsError(
        f"state.store: {path} is not a store of this version of the gateway; name another file, or remove it"
    )


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str, patience_s: float) -> Iterator[sqlite3.Connection]:
    _patiently(db, begin, patience_s)
    try:
        if begin == _READ:
            # The lock of a reader is taken by its first statement, and held from there on.
            _patiently(db, "SELECT 1 FROM sqlite_schema LIMIT 1", patience_s)
        yield db
        _patiently(db, "COMMIT", patience_s)
    except BaseException:  # any exception, a refusal too: an open transaction would lock out all other processes
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _patiently(db: sqlite3.Connection, statement: str, patience_s: float) -> None:
    """Retries while the file is locked. SQLite's own busy handler is made for disks: it sleeps a millisecond and more
    at a time."""
    until = 0.0
    while True:
        try:
            db.execute(statement)
        except sqlite3.OperationalError as error:
            now = time.monotonic()
            until = until or now + patience_s
            if _code(error) not in _BUSY or now >= until:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def _failure(error: sqlite3.Error) -> StoreUnavailable:
    code = _code(error)
    reason: Failure = "down"
    if code in _BUSY:
        reason = "slow"
    elif code in _FULL or _extended_code(error) == sqlite3.SQLITE_IOERR_WRITE:
        reason = "full"
    elif code in _DAMAGED:
        reason = "invalid"
    return StoreUnavailable(reason, str(error))


def _code(error: sqlite3.Error) -> int:
    return _extended_code(error) & 0xFF


def _extended_code(error: sqlite3.Error) -> int:
    # An error of Python's module itself has none.
    return getattr(error, "sqlite_errorcode", 0)


def _inode(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
