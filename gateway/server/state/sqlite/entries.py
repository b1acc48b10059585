"""Reads and writes the entries of a store's file, within the transaction that runs.

An entry lives from `since` to `until` by the wall clock. Where that clock was set back, `since` is in the future: such
an entry begins its time anew, so that no entry outlives its time to live by more than once.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from gateway.server.state.sqlite.tables import OVERHEAD, next_number
from gateway.server.state.store import Entry, Put, Space

Name: TypeAlias = tuple[str, Space, bytes]

_ONE: Final = "tenant = ? AND space = ? AND key = ?"
_LARGEST: Final = "SELECT tenant FROM usage GROUP BY tenant ORDER BY sum(bytes) DESC LIMIT 1"
_OLDEST: Final = "SELECT rowid FROM entries WHERE tenant = ? ORDER BY used LIMIT 1"


def size(put: Put) -> int:
    """Returns the bytes that an entry is counted with."""
    return OVERHEAD + len(put.key) + len(put.data)


def sizes(run: sqlite3.Connection, tenant: str, space: Space, keys: Sequence[bytes]) -> dict[bytes, int]:
    """Returns the sizes of the entries that exist, expired ones included, by key."""
    rows = run.execute(f"SELECT key, size FROM entries WHERE {_some(keys)}", (tenant, space, *keys))
    return {bytes(key): int(size) for key, size in rows}


def read(
    run: sqlite3.Connection, tenant: str, space: Space, keys: Mapping[bytes, int], now: float
) -> dict[bytes, Entry]:
    """Returns the entries that live, by key."""
    rows = run.execute(
        f"SELECT key, data, version FROM entries WHERE {_some(keys)} AND until > ?",
        (tenant, space, *keys, now),
    )
    return {bytes(key): Entry(bytes(data), int(version)) for key, data, version in rows}


def matches(run: sqlite3.Connection, tenant: str, put: Put, now: float) -> bool:
    """Returns whether the entry has the version that the put demands."""
    if put.if_version is None:
        return True
    found = run.execute(
        f"SELECT version FROM entries WHERE {_ONE} AND until > ?", (tenant, put.space, put.key, now)
    ).fetchone()
    return (0 if found is None else int(found[0])) == put.if_version


def write(run: sqlite3.Connection, tenant: str, put: Put, now: float) -> None:
    """Writes an entry in the place of an earlier one."""
    number = next_number(run)
    run.execute(f"DELETE FROM entries WHERE {_ONE}", (tenant, put.space, put.key))
    run.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(tenant, put.space, put.key, now, now + put.ttl_s),
            *(number, size(put), number, put.data),
        ),
    )


def extend(run: sqlite3.Connection, tenant: str, space: Space, keys: Sequence[bytes], now: float, ttl_s: float) -> None:
    """Lets the entries that live begin a time of `ttl_s` anew."""
    run.execute(
        f"UPDATE entries SET since = ?, until = ? WHERE {_some(keys)} AND until > ?",
        (now, now + ttl_s, tenant, space, *keys, now),
    )


def delete(run: sqlite3.Connection, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
    """Deletes the entries that exist."""
    run.execute(f"DELETE FROM entries WHERE {_some(keys)}", (tenant, space, *keys))


def mark_used(run: sqlite3.Connection, names: Iterable[Name]) -> None:
    """Marks entries as the ones used last."""
    for name in names:
        run.execute(f"UPDATE entries SET used = ? WHERE {_ONE}", (next_number(run), *name))


def make_room(run: sqlite3.Connection, max_bytes: int) -> list[Space]:
    """Removes entries until the others take no more than `max_bytes`: of the tenant with the most bytes, the one not
    used for the longest time first. Returns their spaces."""
    removed: list[Space] = []
    while run.execute("SELECT total(bytes) FROM usage").fetchone()[0] > max_bytes:
        [largest] = run.execute(_LARGEST).fetchone()
        rows = run.execute(f"DELETE FROM entries WHERE rowid = ({_OLDEST}) RETURNING space", (largest,))
        removed += (space for (space,) in rows.fetchall())
    return removed


def sweep(run: sqlite3.Connection, now: float) -> list[Space]:
    """Removes the expired entries and returns their spaces. An entry of the future begins its time now."""
    run.execute("UPDATE entries SET until = ? + (until - since), since = ? WHERE since > ?", (now, now, now))
    return [space for (space,) in run.execute("DELETE FROM entries WHERE until <= ? RETURNING space", (now,))]


def _some(keys: Iterable[bytes]) -> str:
    return f"tenant = ? AND space = ? AND key IN ({', '.join('?' for _ in keys)})"
