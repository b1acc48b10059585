"""Defines the tables of a store's file.

`numbers.last` grows with every write: it gives entries their versions, tells which of them was used last, and gives
leases their tokens. `usage` is kept by triggers. Times of entries are of the wall clock, in seconds, since they outlive
the machine; those of leases and limits are of the monotonic clock, which all processes of a machine share.
"""

import sqlite3
from typing import Final

# "Drgn", and the version of the tables: the gateway never writes to any other file.
APPLICATION: Final = 0x4472676E
VERSION: Final = 3
HEADER: Final = 100
PAGE: Final = 4096
# What an entry takes in the file besides its key and data.
OVERHEAD: Final = 250

_STATEMENTS: Final = (
    """CREATE TABLE entries (
        tenant TEXT NOT NULL, space TEXT NOT NULL, key BLOB NOT NULL,
        since REAL NOT NULL, until REAL NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL,
        version INTEGER NOT NULL, data BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX entry ON entries (tenant, space, key)",
    "CREATE INDEX entries_used ON entries (tenant, used)",
    "CREATE INDEX entries_until ON entries (until)",
    "CREATE INDEX entries_since ON entries (since)",
    """CREATE TABLE usage (
        tenant TEXT, space TEXT, entries INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (tenant, space)
    ) WITHOUT ROWID""",
    """CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
        INSERT INTO usage VALUES (new.tenant, new.space, 1, new.size)
        ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + excluded.bytes;
    END""",
    """CREATE TRIGGER entry_removed AFTER DELETE ON entries BEGIN
        UPDATE usage SET entries = entries - 1, bytes = bytes - old.size
        WHERE tenant = old.tenant AND space = old.space;
        DELETE FROM usage WHERE tenant = old.tenant AND space = old.space AND entries = 0;
    END""",
    "CREATE TABLE epochs (tenant TEXT PRIMARY KEY, epoch BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE leases (
        tenant TEXT, name TEXT, token INTEGER NOT NULL, holder TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (tenant, name)
    ) WITHOUT ROWID""",
    "CREATE TABLE numbers (last INTEGER NOT NULL)",
    "INSERT INTO numbers VALUES (0)",
    "CREATE TABLE rates (key TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE places (key TEXT, holder TEXT, running INTEGER NOT NULL, PRIMARY KEY (key, holder)) WITHOUT ROWID",
    "CREATE TABLE counted (key TEXT, holder TEXT, total INTEGER NOT NULL, PRIMARY KEY (key, holder)) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def create_tables(run: sqlite3.Connection) -> None:
    """Creates the tables in an empty file, within the transaction that runs."""
    for statement in _STATEMENTS:
        run.execute(statement)


def is_empty(run: sqlite3.Connection) -> bool:
    """Returns whether the file has no tables at all."""
    return not run.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def is_ours(header: bytes) -> bool:
    """Returns whether a file that begins with these bytes is a store of this version, damaged or not
    (https://www.sqlite.org/fileformat.html, section 1.3)."""
    return header.startswith(b"SQLite format 3\0") and (header[60:64], header[68:72]) == (
        VERSION.to_bytes(4, "big"),
        APPLICATION.to_bytes(4, "big"),
    )


def next_number(run: sqlite3.Connection) -> int:
    """Returns a number that is higher than all before it."""
    return int(run.execute("UPDATE numbers SET last = last + 1 RETURNING last").fetchone()[0])
