"""What only the SQLite store promises: a private file, whatever happens to it, and what outlives a process."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from gateway.core.errors import SettingsError
from gateway.server.state.open_store import open_store
from gateway.server.state.process_identity import process_identity
from gateway.server.state.sqlite import SqliteStore, check_file, file
from gateway.server.state.store import Put, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings
from tests.server.state.sqlite.files import LASTING, RECOVERED, Undo, lock
from tests.server.state.stores import Evictions
from tests.server.state.test_process_identity import OURS

SECRET: Final = b"do not keep this sentence" * 20
DAY_S: Final = 86_400.0


@asynccontextmanager
async def opened(
    path: Path, holder: str = OURS, max_bytes: int = 2**20, evictions: Evictions | None = None
) -> AsyncIterator[SqliteStore]:
    seen = [] if evictions is None else evictions
    store = SqliteStore(path, holder, max_bytes, lambda *eviction: seen.append(eviction))
    yield store
    await store.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "gateway.db"


def put(key: bytes = b"k", data: bytes = b"data", ttl_s: float = 60) -> Put:
    return Put("ops", key, data, ttl_s)


async def data(store: SqliteStore, key: bytes = b"k") -> bytes | None:
    [entry] = await store.get("a", "ops", (key,))
    return None if entry is None else entry.data


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in (folder, *folder.iterdir())}


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def check_integrity(path: Path) -> None:
    with sqlite3.connect(path) as seen:
        assert seen.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    seen.close()


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


async def test_nobody_else_can_read_the_file(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        assert modes(path.parent) == {"state": 0o700, "gateway.db": 0o600, "gateway.db-journal": 0o600}


async def test_entries_and_epochs_outlive_the_process(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        epoch = await store.epoch("a")
    async with opened(path) as store:
        assert await data(store) == b"data"
        assert await store.epoch("a") == epoch


async def expire(store: SqliteStore) -> None:
    await asyncio.sleep(0.06)
    store._swept = 0
    await store.ping()


Deletion: TypeAlias = Callable[[SqliteStore], Awaitable[None]]
DELETIONS: Final[dict[str, Deletion]] = {
    "delete": lambda store: store.delete("a", "ops", (b"k", b"l")),
    "forget": lambda store: store.forget("a"),
    "purge": lambda store: store.purge(),
    "expiry": expire,
}


@pytest.mark.parametrize("deletion", DELETIONS)
async def test_nothing_that_was_deleted_is_left_in_the_files(path: Path, deletion: str) -> None:
    async with opened(path) as store:
        await store.put("b", put(data=b"theirs"))
        await store.put("a", put(data=SECRET, ttl_s=0.05))
        await store.put("a", put(b"l", SECRET * 40, ttl_s=0.05))
        assert SECRET in contents(path.parent)
        await DELETIONS[deletion](store)
        assert SECRET[:25] not in contents(path.parent)


async def recovered(store: SqliteStore) -> bool:
    """Whether the store works again after at most three failures."""
    for _ in range(4):
        try:
            await store.put("a", put(data=b"after"))
        except StoreUnavailable as failure:
            assert failure.reason in ("invalid", "down")
        else:
            return await data(store) == b"after"
    return False


@pytest.mark.parametrize("event", RECOVERED)
async def test_a_file_that_is_damaged_or_removed_begins_anew(path: Path, event: str) -> None:
    """For a process that has it open, and for one that opens it then."""
    async with opened(path) as store, opened(path) as other:
        for number in range(20):
            await store.put("a", put(b"%d" % number, b"x" * 3000))
        RECOVERED[event](path)
        if event == "overwritten":
            # Only a process that has used it knows that it was a store.
            assert await recovered(store)
        assert await recovered(other)
        assert await recovered(store)
        await other.put("a", put(data=b"shared"))
        assert await data(store) == b"shared"
    check_integrity(path)


def check_foreign_and_remove(path: Path) -> None:
    with sqlite3.connect(path) as foreign:
        assert foreign.execute("SELECT name FROM sqlite_schema").fetchall() == [("mine",)]
    foreign.close()
    path.unlink()


@pytest.mark.parametrize("event", LASTING)
async def test_what_lasts_fails_until_it_is_over(path: Path, event: str) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        undo: Undo = LASTING[event](path)
        reasons = set()
        try:
            for _ in range(3):
                with pytest.raises(StoreUnavailable) as raised:
                    await store.put("a", put(data=b"x" * 9000))
                reasons.add(raised.value.reason)
        finally:
            if undo is not None:
                undo()
        assert reasons == {{"locked": "slow", "full disk": "full", "replaced": "down"}[event]}
        if event == "replaced":
            check_foreign_and_remove(path)
        await store.put("a", put(data=b"after"))
        assert await data(store) == b"after"


async def test_a_full_disk_stops_no_read(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        undo = LASTING["full disk"](path)
        try:
            assert await data(store) == b"data"
        finally:
            assert undo is not None
            undo()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store waits for a lock for longer than a busy machine pauses."""
    monkeypatch.setattr(file, "PATIENCE_S", 30)


@pytest.mark.usefixtures("patient")
async def test_a_lock_of_another_process_does_not_hold_up_the_loop(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        undo = lock(path)
        assert undo is not None
        writing = asyncio.ensure_future(store.put("a", put()))
        for _ in range(5):
            await asyncio.sleep(0.005)
        # A write that held up the loop would be over by now.
        assert not writing.done()
        undo()
        assert await writing


async def test_a_write_gives_a_long_lock_of_another_process_up(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        undo = lock(path)
        assert undo is not None
        try:
            with pytest.raises(StoreUnavailable):
                await store.put("a", put())
        finally:
            undo()


@pytest.mark.usefixtures("patient")
async def test_a_read_waits_for_a_short_lock_of_another_process(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())
        undo = lock(path)
        assert undo is not None
        reading = asyncio.ensure_future(store.get("a", put().space, [put().key]))
        await asyncio.sleep(0.02)
        assert not reading.done()
        undo()
        [found] = await reading
        assert found is not None and found.data == put().data


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(SECRET) + 7] ^= 1
    path.write_bytes(content)


async def test_a_flipped_bit_in_an_entry_is_a_miss(path: Path) -> None:
    """As the gateway opens the file: with the seal that checks each entry."""
    store = open_store(StateSettings(store=f"sqlite:{path}"), Metrics(), {})
    await store.put("a", put(data=SECRET))
    await store.put("a", put(b"l", b"sound"))
    flip_a_bit(path)
    await store.aclose()
    again = open_store(StateSettings(store=f"sqlite:{path}"), Metrics(), {})
    damaged, sound = await again.get("a", "ops", (b"k", b"l"))
    assert damaged is None and sound is not None and sound.data == b"sound"
    await again.aclose()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (what TEXT)")
    other.close()


def newer(path: Path) -> None:
    asyncio.run(_made(path))
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()


async def _made(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put())


def no_database(path: Path) -> None:
    path.write_text("some notes of mine\n" * 100)


@pytest.mark.parametrize("make", [foreign, newer, no_database])
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "gateway.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(SettingsError, match=r"state.store: .* is not a store of this version"):
        check_file(path)

    async def use() -> None:
        async with opened(path) as store:
            for _ in range(4):
                with pytest.raises(StoreUnavailable):
                    await store.put("a", put())

    asyncio.run(use())
    assert path.read_bytes() == before


def test_a_new_an_empty_and_an_own_file_are_accepted(path: Path) -> None:
    check_file(path)
    asyncio.run(_made(path))
    check_file(path)
    path.write_bytes(b"")
    check_file(path)
    asyncio.run(_made(path))


@pytest.mark.parametrize("jump", [DAY_S, -365 * DAY_S])
async def test_a_clock_jump_lets_no_entry_outlive_its_time(
    path: Path, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of an hour: a day ahead it is gone, a year back it lives for one hour more."""
    start = time.time()
    clock = [start]
    monkeypatch.setattr("time.time", lambda: clock[0])
    evictions: Evictions = []
    async with opened(path, evictions=evictions) as store:
        await store.put("a", put(ttl_s=3600))
        lease = await store.acquire("a", "work", 60)
        assert lease is not None
        clock[0] = start + jump
        await store.ping()
        assert await data(store) == (None if jump > 0 else b"data")
        # Leases follow the monotonic clock.
        assert await store.renew(lease)
        clock[0] += 3601
        await store.ping()
        assert await data(store) is None
        assert evictions == [("ops", "expired")]


async def test_the_lease_of_a_dead_process_is_free_at_once(path: Path) -> None:
    process = started("-c", "input()")
    async with opened(path, process_identity(process.pid)) as dead, opened(path) as store:
        lease = await dead.acquire("a", "work", 60)
        assert lease is not None and await store.acquire("a", "work", 60) is None
        process.kill()
        process.wait()
        mine = await store.acquire("a", "work", 60)
        assert mine is not None and mine.token > lease.token
        assert not await dead.commit(lease, [put()])
    process.communicate()


KILLED: Final = """
import asyncio, os, sys
from pathlib import Path
from gateway.server.state.process_identity import process_identity
from gateway.server.state.open_store import open_store
from gateway.server.state.sqlite import SqliteStore, entries
from gateway.server.state.store import Put

async def work():
    store = SqliteStore(Path(sys.argv[1]), process_identity(os.getpid()), 2**20, lambda *_: None)
    lease = await store.acquire("a", "work", 60)
    written = entries.write
    def write(run, tenant, put, now):
        written(run, tenant, put, now)
        if put.key == b"2":
            # So much that it goes into the file before it is committed.
            run.execute("PRAGMA cache_spill = 1")
            run.execute("PRAGMA cache_size = 1")
            print("begun", flush=True)
            sys.stdin.read()
    entries.write = write
    await store.commit(lease, [Put("ops", b"%d" % number, b"x" * 100_000, 60) for number in range(4)])

asyncio.run(work())
"""


async def test_kill_9_in_the_midst_of_a_commit_leaves_nothing_of_it(path: Path) -> None:
    async with opened(path) as store:
        await store.put("a", put(b"0", b"before"))
        with started("-c", KILLED, str(path)) as process:
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
            with pytest.raises(StoreUnavailable):
                await store.put("a", put(b"9"))
            process.kill()
            process.wait()
        assert [await data(store, key) for key in (b"0", b"1", b"2")] == [b"before", None, None]
        assert await store.acquire("a", "work", 60) is not None
    check_integrity(path)


@pytest.mark.full
async def test_the_file_stays_below_its_bound_and_counts_what_it_removes(path: Path) -> None:
    evictions: Evictions = []
    most = 2**20
    async with opened(path, max_bytes=most, evictions=evictions) as store:
        for number in range(4000):
            await store.put("ab"[number % 2], put(b"%d" % number, os.urandom(number % 4000)))
        stats = await store.stats()
        assert 0.9 * most <= sum(used.bytes for used in stats.usage) <= most
        assert sum(used.entries for used in stats.usage) + len(evictions) == 4000
        assert len(contents(path.parent)) <= 2 * most + 64 * 4096
