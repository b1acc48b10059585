"""What every store does, of whichever kind."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gateway.server.state.store import (
    ABSENT,
    EPOCH_BYTES,
    EVERYONE,
    SPACES,
    Entry,
    Put,
    StateStore,
    StoreUnavailable,
    forgotten_at,
)
from tests.server.state.stores import BOUNDED, MAX_BYTES, STORES, Evictions, Pair

LONG: Final = 60.0
SHORT: Final = 0.05
# Longer than a busy machine pauses between two operations.
PAUSE: Final = 0.6
PATIENCE_S: Final = 30


@pytest.fixture(params=STORES)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(STORES[request.param](tmp_path, []))


@pytest.fixture
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Valkey and Redis are asked again about an epoch after half a second."""
    monkeypatch.setattr("gateway.server.state.valkey.epochs.FRESH_S", 0.5)


def put(data: bytes, key: bytes = b"k", ttl_s: float = LONG, if_version: int | None = None) -> Put:
    return Put("sum", key, data, ttl_s, if_version)


async def one(store: StateStore, tenant: str = "a", key: bytes = b"k") -> Entry | None:
    [entry] = await store.get(tenant, "sum", (key,))
    return entry


async def data(store: StateStore, tenant: str = "a", key: bytes = b"k") -> bytes | None:
    entry = await one(store, tenant, key)
    return None if entry is None else entry.data


async def test_what_one_worker_puts_the_other_gets(pair: Pair) -> None:
    mine, other = pair
    assert await mine.put("a", put(b"first"))
    assert await mine.put("a", put(b"", key=b"empty"))
    found = await other.get("a", "sum", (b"empty", b"absent", b"k", b"k"))
    assert [entry and entry.data for entry in found] == [b"", None, b"first", b"first"]
    assert await other.get("a", "sum", ()) == []


@pytest.mark.parametrize("size", [1, 4096, 5000, 300_000])
async def test_every_byte_of_every_size_stays(pair: Pair, size: int) -> None:
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert await pair[0].put("a", put(content, key=bytes(range(64))))
    assert await data(pair[1], key=bytes(range(64))) == content


async def test_tenants_and_spaces_are_apart(pair: Pair) -> None:
    mine, other = pair
    for tenant in ("a", "b", "-"):
        for space in SPACES:
            await mine.put(tenant, Put(space, b"k", f"{tenant}{space}".encode(), LONG))
    for tenant in ("a", "b", "-"):
        for space in SPACES:
            [entry] = await other.get(tenant, space, (b"k",))
            assert entry is not None and entry.data == f"{tenant}{space}".encode()
    assert await data(other, tenant="c") is None


async def test_versions_grow_and_decide_which_put_counts(pair: Pair) -> None:
    mine, other = pair
    assert not await mine.put("a", put(b"x", if_version=7))
    assert await mine.put("a", put(b"one", if_version=ABSENT))
    assert not await other.put("a", put(b"two", if_version=ABSENT))
    first = await one(other)
    assert first is not None and first.data == b"one" and first.version > ABSENT
    assert await other.put("a", put(b"two", if_version=first.version))
    assert not await mine.put("a", put(b"three", if_version=first.version))
    second = await one(mine)
    assert second is not None and second.data == b"two" and second.version > first.version
    await mine.delete("a", "sum", (b"k",))
    assert not await mine.put("a", put(b"three", if_version=second.version))
    assert await mine.put("a", put(b"again", if_version=ABSENT))
    third = await one(other)
    assert third is not None and third.version > second.version


async def test_of_concurrent_changes_of_one_version_one_is_made(pair: Pair) -> None:
    await pair[0].put("a", put(b""))
    entry = await one(pair[0])
    assert entry is not None
    puts = (pair[number % 2].put("a", put(b"%d" % number, if_version=entry.version)) for number in range(20))
    assert Counter(await asyncio.gather(*puts)) == {True: 1, False: 19}


async def test_an_entry_ends_with_its_time(pair: Pair) -> None:
    mine, other = pair
    await mine.put("a", put(b"short", ttl_s=SHORT))
    await mine.put("a", put(b"long", key=b"l"))
    async with asyncio.timeout(PATIENCE_S):
        # A machine that pauses for longer ends the entry before it is extended.
        while await data(mine, key=b"e") is None:
            await mine.put("a", put(b"extended", key=b"e", ttl_s=PAUSE))
            await mine.extend("a", "sum", (b"e", b"absent"), LONG)
            await asyncio.sleep(0)
    await asyncio.sleep(PAUSE * 1.1)
    assert [await data(other, key=key) for key in (b"k", b"e", b"l", b"absent")] == [None, b"extended", b"long", None]
    assert await other.put("a", put(b"new", if_version=ABSENT))


async def test_extending_changes_no_version(pair: Pair) -> None:
    await pair[0].put("a", put(b"x"))
    before = await one(pair[0])
    await pair[0].extend("a", "sum", (b"k",), LONG)
    assert await one(pair[1]) == before


async def test_deletion_is_seen_at_once(pair: Pair) -> None:
    mine, other = pair
    for key in (b"k", b"l", b"m"):
        await mine.put("a", put(b"x", key=key))
    await other.delete("a", "sum", (b"k", b"l", b"absent"))
    assert [await data(mine, key=key) for key in (b"k", b"l", b"m")] == [None, None, b"x"]


async def test_forget_leaves_nothing_of_a_tenant_and_everything_of_the_others(pair: Pair) -> None:
    mine, other = pair
    for tenant in ("a", "b"):
        for space in SPACES:
            await mine.put(tenant, Put(space, b"k", b"x", LONG))
    lease = await mine.acquire("a", "work", LONG)
    assert lease is not None
    epochs = [await mine.epoch("a"), await mine.epoch("b")]
    await mine.forget("a")
    for space in SPACES:
        assert await mine.get("a", space, (b"k",)) == [None]
        assert await mine.get("b", space, (b"k",)) != [None]
    assert not await mine.commit(lease, (put(b"late"),))
    assert not await mine.renew(lease)
    assert await mine.epoch("a") != epochs[0] and await mine.epoch("b") == epochs[1]
    # Another worker may have read the epoch before.
    for _ in range(60):
        if await data(other) is None and await other.epoch("a") != epochs[0]:
            break
        await asyncio.sleep(0.1)
    assert await data(other) is None and await other.epoch("a") == await mine.epoch("a")
    assert await mine.put("a", put(b"new"))
    assert await data(other) == b"new"


async def test_an_epoch_is_the_same_for_all_workers(pair: Pair) -> None:
    first, second = await pair[0].epoch("a"), await pair[0].epoch("b")
    assert await pair[1].epoch("a") == first != second
    assert len(first) == len(second) == EPOCH_BYTES


async def told(store: StateStore, tenant: str) -> float:
    return forgotten_at(await store.epoch(tenant))


async def test_one_look_says_when_each_tenant_was_forgotten(pair: Pair) -> None:
    mine, other = pair
    tenants = ["a", "b", "never seen", *map(str, range(1000))]
    await mine.epoch("b")
    assert await other.forgotten(tenants) == [0.0] * len(tenants)
    before = time.time()
    await mine.forget("a")
    first, *rest = await other.forgotten(tenants)
    assert before - 0.001 <= first <= time.time()
    assert first == await told(mine, "a")
    assert rest == [0.0] * len(rest)
    assert await mine.forgotten([]) == []


async def test_every_worker_learns_when_a_tenant_was_forgotten(pair: Pair, short_epochs: None) -> None:
    mine, other = pair
    assert [await told(store, "a") for store in pair] == [0.0, 0.0]
    before = time.time()
    await mine.forget("a")
    for _ in range(60):
        if await told(other, "a"):
            break
        await asyncio.sleep(0.1)
    assert before - 0.001 <= await told(other, "a") == await told(mine, "a") <= time.time()
    assert await told(other, "b") == 0.0 == await told(other, EVERYONE)


async def test_every_worker_learns_when_everything_was_deleted(pair: Pair, short_epochs: None) -> None:
    mine, other = pair
    await other.epoch(EVERYONE)
    before = time.time()
    await mine.purge()
    for _ in range(60):
        if await told(other, EVERYONE):
            break
        await asyncio.sleep(0.1)
    assert before - 0.001 <= await told(other, EVERYONE) <= time.time()
    assert await told(other, "a") == 0.0


def test_a_record_of_an_earlier_version_tells_no_time() -> None:
    assert forgotten_at(os.urandom(EPOCH_BYTES)) == 0.0 == forgotten_at(bytes(EPOCH_BYTES)) == forgotten_at(b"")


async def test_purge_leaves_nothing(pair: Pair) -> None:
    mine, other = pair
    for tenant in ("a", "b"):
        await mine.put(tenant, put(b"x"))
    lease = await mine.acquire("a", "work", LONG)
    assert lease is not None
    await other.purge()
    assert [await data(mine, tenant) for tenant in ("a", "b")] == [None, None]
    assert not await mine.renew(lease)
    assert [used for used in (await mine.stats()).usage if used.entries] == []


async def test_one_holds_a_lease(pair: Pair) -> None:
    mine, other = pair
    lease = await mine.acquire("a", "work", LONG)
    assert lease is not None
    assert [await store.acquire("a", "work", LONG) for store in pair] == [None, None]
    assert await other.acquire("a", "other", LONG) is not None
    assert await other.acquire("b", "work", LONG) is not None
    assert await mine.renew(lease)
    await mine.release(lease)
    assert not await mine.renew(lease)
    again = await other.acquire("a", "work", LONG)
    assert again is not None and again.token > lease.token
    # The end of the former holder ends nothing of the new one.
    await mine.release(lease)
    assert await other.renew(again)


async def test_of_many_one_gets_the_lease(pair: Pair) -> None:
    asked = await asyncio.gather(*(pair[number % 2].acquire("a", "work", LONG) for number in range(20)))
    assert sum(lease is not None for lease in asked) == 1


async def test_a_lease_ends_with_its_time_and_then_commits_nothing(pair: Pair) -> None:
    mine, other = pair
    paused = await mine.acquire("a", "work", SHORT)
    assert paused is not None
    await asyncio.sleep(SHORT * 1.5)
    assert not await mine.commit(paused, (put(b"alone, but late"),))
    lease = await other.acquire("a", "work", LONG)
    assert lease is not None and lease.token > paused.token
    assert await other.commit(lease, (put(b"first"),))
    assert not await mine.renew(paused)
    assert not await mine.commit(paused, (put(b"late"),))
    await other.release(lease)
    assert not await mine.commit(paused, (put(b"late"),))
    assert await data(mine) == b"first"


async def test_a_renewed_lease_lives_on(pair: Pair) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            lease = await pair[0].acquire("a", "work", PAUSE)
            assert lease is not None
            lease = msgspec.structs.replace(lease, ttl_s=LONG)
            # A machine that pauses for longer ends the lease before it is renewed.
            if await pair[0].renew(lease):
                break
            await asyncio.sleep(0)
    await asyncio.sleep(PAUSE * 1.1)
    assert await pair[1].acquire("a", "work", LONG) is None
    assert await pair[0].commit(lease, (put(b"x"),))


async def test_a_commit_writes_all_or_nothing(pair: Pair) -> None:
    mine, other = pair
    lease = await mine.acquire("a", "work", LONG)
    assert lease is not None
    await mine.put("a", put(b"there", key=b"2"))
    assert not await mine.commit(lease, (put(b"new", key=b"1"), put(b"new", key=b"2", if_version=ABSENT)))
    assert [await data(other, key=key) for key in (b"1", b"2")] == [None, b"there"]
    assert await mine.commit(lease, (put(b"new", key=b"1"), Put("idx", b"2", b"new", LONG, ABSENT)))
    assert await data(other, key=b"1") == b"new"
    assert await other.get("b", "sum", (b"1",)) == [None]
    # The lease goes on after a commit.
    assert await mine.commit(lease, (put(b"newer", key=b"1"),))
    assert await data(other, key=b"1") == b"newer"


async def test_a_commit_may_be_empty(pair: Pair) -> None:
    lease = await pair[0].acquire("a", "work", LONG)
    assert lease is not None and await pair[0].commit(lease, ())


async def test_stats_count_entries_and_bytes(pair: Pair) -> None:
    for key in (b"1", b"2"):
        await pair[0].put("a", put(os.urandom(1000), key=key))
    await pair[0].put("b", Put("rsp", b"1", os.urandom(3000), LONG))
    found = await pair[1].stats()
    shown = sorted((used.space, used.entries) for used in found.usage if used.entries)
    assert shown == [("rsp", 1), ("sum", 2)]
    assert all(1000 * used.entries <= used.bytes <= 5000 * used.entries for used in found.usage if used.entries)


async def test_a_ping_of_a_working_store_raises_nothing(pair: Pair) -> None:
    await pair[0].ping()


async def test_no_reply_of_a_cancelled_get_reaches_another_one(pair: Pair) -> None:
    """Many gets are cancelled at any of their steps; of those that go on, each gets its own entry."""
    mine, _ = pair
    content = {b"%d" % number: (b"%d " % number) * (1 + 97 * number) for number in range(40)}
    for key, value in content.items():
        await mine.put("a", put(value, key=key))
    cancelled = 0
    for turn in range(25):
        keys = list(content) * 2
        tasks = [asyncio.create_task(data(mine, key=key)) for key in keys]
        if turn % 7:
            # Where a get takes no step at all, it cannot be cancelled but before it begins.
            await asyncio.sleep(0 if turn % 2 else 0.0005)
        for task in tasks[turn % 2 :: 2]:
            cancelled += task.cancel()
        for key, found in zip(keys, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            assert isinstance(found, asyncio.CancelledError) or found == content[key]
    assert cancelled >= 100
    assert [await data(mine, key=key) for key in content] == [*content.values()]


@pytest.mark.parametrize("kind", BOUNDED)
async def test_room_is_made_at_the_cost_of_who_has_most(kind: str, tmp_path: Path) -> None:
    evictions: Evictions = []
    async with STORES[kind](tmp_path, evictions) as (mine, other):
        await mine.put("b", put(b"x" * 1000, key=b"small"))
        for number in range(40):
            await mine.put("a", put(b"x" * 50_000, key=b"%d" % number))
            # What is used again and again stays.
            assert await data(mine, key=b"0") is not None
        found = await other.stats()
        assert sum(used.bytes for used in found.usage) <= MAX_BYTES
        assert found.max_bytes == MAX_BYTES
        assert await data(other, "b", b"small") is not None
        assert await data(other, key=b"39") is not None
        assert await data(other, key=b"1") is None
        assert len(evictions) >= 19 and set(evictions) == {("sum", "full")}


@pytest.mark.parametrize("kind", BOUNDED)
async def test_what_is_larger_than_the_store_changes_nothing(kind: str, tmp_path: Path) -> None:
    async with STORES[kind](tmp_path, []) as (mine, _):
        await mine.put("a", put(b"there"))
        with pytest.raises(StoreUnavailable) as raised:
            await mine.put("a", put(b"x" * (MAX_BYTES + 1)))
        assert raised.value.reason == "full"
        assert await data(mine) == b"there"
