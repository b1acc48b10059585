"""Keeps entries, epochs and leases in a store's file."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from gateway.server.state.process_identity import is_alive
from gateway.server.state.sqlite import entries
from gateway.server.state.sqlite.file import AT_ONCE, SqliteDatabase
from gateway.server.state.sqlite.tables import next_number
from gateway.server.state.store import (
    EVERYONE,
    Entry,
    EvictionReason,
    Lease,
    OnEvict,
    Put,
    Space,
    StoreStats,
    StoreUnavailable,
    Usage,
    first_record,
    forgotten_at,
    next_record,
)

# More bytes than this are read or written in a thread.
LARGE: Final = 4096
# The time between two removals of the expired entries.
SWEEP_S: Final = 60.0
# So many entries that were read, but not yet marked as used, cause a write of their own.
MOST_READ: Final = 256

T = TypeVar("T")
Evicted = list[tuple[Space, EvictionReason]]


class SqliteStore:
    """See `StateStore`. `holder` is the name of this process, `max_bytes` bounds the entries of the file."""

    def __init__(self, path: Path, holder: str, max_bytes: int, on_evict: OnEvict) -> None:
        self.name = f"sqlite:{path}"
        self.at_once = AT_ONCE
        self._holder = holder
        self._max_bytes = max_bytes
        self._on_evict = on_evict
        self._database = SqliteDatabase(path, max_bytes)
        # Names of entries that were read since the last write.
        self._read: dict[entries.Name, None] = {}
        self._swept = float("-inf")

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """See `StateStore`."""
        if not keys:
            return []
        now = time.time()
        sizes = await self._database.read(lambda run: entries.sizes(run, tenant, space, keys))
        large = sum(sizes.values()) > LARGE
        found = await self._database.read(lambda run: entries.read(run, tenant, space, sizes, now), large)
        self._read |= dict.fromkeys((tenant, space, key) for key in found)
        if len(self._read) > MOST_READ:
            await self._write(lambda run: None)
        return [found.get(key) for key in keys]

    async def put(self, tenant: str, *puts: Put) -> bool:
        """See `StateStore`."""
        return await self._put_all(tenant, puts)

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """See `StateStore`."""
        now = time.time()
        await self._write(lambda run: entries.extend(run, tenant, space, keys, now, ttl_s))

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        await self._write(lambda run: entries.delete(run, tenant, space, keys))

    async def epoch(self, tenant: str) -> bytes:
        """See `StateStore`."""
        found: bytes | None = await self._database.read(lambda run: _epoch(run, tenant))
        return found if found is not None else await self._write(lambda run: _begin_epoch(run, tenant))

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """See `StateStore`."""
        large = len(tenants) > MOST_READ
        return await self._database.read(
            lambda run: [forgotten_at(_epoch(run, tenant) or b"") for tenant in tenants], large
        )

    async def forget(self, tenant: str) -> None:
        """See `StateStore`."""

        record = next_record(time.time())

        def forget(run: sqlite3.Connection) -> None:
            for table in ("entries", "leases"):
                run.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
            run.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", (tenant, record))

        await self._write(forget, large=True)

    async def purge(self) -> None:
        """See `StateStore`."""

        record = next_record(time.time())

        def purge(run: sqlite3.Connection) -> None:
            for table in ("entries", "leases", "epochs"):
                run.execute(f"DELETE FROM {table}")
            run.execute("INSERT INTO epochs VALUES (?, ?)", (EVERYONE, record))

        await self._write(purge, large=True)

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """See `StateStore`. The lease of a dead process has ended."""

        def acquire(run: sqlite3.Connection) -> Lease | None:
            now = time.monotonic()
            held = run.execute(
                "SELECT holder FROM leases WHERE tenant = ? AND name = ? AND until > ?", (tenant, name, now)
            ).fetchone()
            if held is not None and is_alive(held[0]):
                return None
            lease = Lease(tenant, name, next_number(run), ttl_s)
            run.execute("DELETE FROM leases WHERE until <= ?", (now,))
            run.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)",
                (tenant, name, lease.token, self._holder, now + ttl_s),
            )
            return lease

        return await self._write(acquire)

    async def renew(self, lease: Lease) -> bool:
        """See `StateStore`."""

        def renew(run: sqlite3.Connection) -> bool:
            if not _is_held(run, lease):
                return False
            until = time.monotonic() + lease.ttl_s
            run.execute("UPDATE leases SET until = ? WHERE token = ?", (until, lease.token))
            return True

        return await self._write(renew)

    async def release(self, lease: Lease) -> None:
        """See `StateStore`."""

        def release(run: sqlite3.Connection) -> None:
            run.execute("DELETE FROM leases WHERE token = ?", (lease.token,))

        await self._write(release)

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """See `StateStore`."""
        return await self._put_all(lease.tenant, puts, lease)

    async def stats(self) -> StoreStats:
        """See `StateStore`."""

        def usage(run: sqlite3.Connection) -> tuple[Usage, ...]:
            rows = run.execute("SELECT tenant, space, entries, bytes FROM usage ORDER BY tenant, space").fetchall()
            return tuple(Usage(*row) for row in rows)

        return StoreStats(await self._write(usage), self._max_bytes)

    async def ping(self) -> None:
        """See `StateStore`."""
        await self._write(lambda run: None)

    async def aclose(self) -> None:
        """See `StateStore`."""
        await self._database.aclose()

    async def _put_all(self, tenant: str, puts: Sequence[Put], lease: Lease | None = None) -> bool:
        size = sum(map(entries.size, puts))
        if size > self._max_bytes:
            raise StoreUnavailable("full", f"{size} bytes at once")
        now, evicted = time.time(), Evicted()

        def write(run: sqlite3.Connection) -> bool:
            evicted.clear()
            if lease is not None and not _is_held(run, lease):
                return False
            if not all(entries.matches(run, tenant, put, now) for put in puts):
                return False
            for put in puts:
                entries.write(run, tenant, put, now)
            evicted.extend((space, "full") for space in entries.make_room(run, self._max_bytes))
            return True

        stored = await self._write(write, size > LARGE)
        self._count(evicted)
        return stored

    async def _write(self, work: Callable[[sqlite3.Connection], T], large: bool = False) -> T:
        """Runs the work in a transaction, which also marks what was read and removes what has expired."""
        now, read = time.time(), list(self._read)
        sweeps = abs(now - self._swept) >= SWEEP_S
        expired = Evicted()

        def write(run: sqlite3.Connection) -> T:
            entries.mark_used(run, read)
            if sweeps:
                expired[:] = [(space, "expired") for space in entries.sweep(run, now)]
            return work(run)

        result = await self._database.write(write, large or sweeps)
        for name in read:
            self._read.pop(name, None)
        if sweeps:
            self._swept = now
            self._count(expired)
        return result

    def _count(self, evicted: Evicted) -> None:
        for space, reason in evicted:
            self._on_evict(space, reason)


def _epoch(run: sqlite3.Connection, tenant: str) -> bytes | None:
    found = run.execute("SELECT epoch FROM epochs WHERE tenant = ?", (tenant,)).fetchone()
    return None if found is None else bytes(found[0])


def _begin_epoch(run: sqlite3.Connection, tenant: str) -> bytes:
    # Another process may have begun one meanwhile.
    found = _epoch(run, tenant)
    if found is None:
        found = first_record()
        run.execute("INSERT INTO epochs VALUES (?, ?)", (tenant, found))
    return found


def _is_held(run: sqlite3.Connection, lease: Lease) -> bool:
    row = (lease.tenant, lease.name, lease.token, time.monotonic())
    found = run.execute("SELECT 1 FROM leases WHERE tenant = ? AND name = ? AND token = ? AND until > ?", row)
    return found.fetchone() is not None
