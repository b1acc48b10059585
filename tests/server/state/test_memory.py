"""What only the memory store promises: bounds of each space, an exact clock, and no growth."""

import subprocess
import sys
from typing import Final

import pytest

from gateway.server.state.memory import OVERHEAD, SPARE, MemoryStore
from gateway.server.state.store import Put
from tests.server.state.stores import Evictions


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def unseen(*_: object) -> None:
    """No test of these looks at evictions."""


def put(key: int, size: int = 100, ttl_s: float = 60) -> Put:
    return Put("ops", b"%d" % key, b"x" * size, ttl_s)


async def test_a_space_has_its_own_bound() -> None:
    store = MemoryStore(2**20, unseen, {"ops": 20_000})
    await store.put("a", Put("sum", b"k", b"x" * 50_000, 60))
    for key in range(50):
        await store.put("a", put(key, 1000))
    found = {used.space: used for used in (await store.stats()).usage}
    assert found["ops"].bytes <= 20_000 and found["ops"].entries == 20_000 // (1000 + OVERHEAD + 2)
    assert found["sum"].entries == 1


async def test_expired_entries_leave_the_memory() -> None:
    clock = Clock()
    evictions: Evictions = []
    store = MemoryStore(2**20, lambda *eviction: evictions.append(eviction), clock=clock)
    for key in range(100):
        await store.put("a", put(key, ttl_s=key + 1))
    await store.extend("a", "ops", (b"0", b"1"), 500)
    clock.now += 50
    await store.ping()
    assert [used.entries for used in (await store.stats()).usage] == [52]
    assert evictions == [("ops", "expired")] * 48
    clock.now += 1000
    assert (await store.stats()).usage == ()
    assert (store._size, store._entries, store._shelves, store._ends) == (0, 0, {}, [])


async def test_entries_written_again_and_again_take_no_more_memory() -> None:
    store = MemoryStore(2**20, unseen)
    for number in range(10 * SPARE):
        await store.put("a", put(number % 3, number % 500))
    assert len(store._ends) <= 2 * 3 + SPARE + 1
    assert [used.entries for used in (await store.stats()).usage] == [3]
    assert store._size == sum(used.bytes for used in (await store.stats()).usage)


async def test_leases_that_ended_leave_the_memory() -> None:
    clock = Clock()
    store = MemoryStore(2**20, unseen, clock=clock)
    for number in range(100):
        assert await store.acquire("a", str(number), 1) is not None
        clock.now += 0.5
    assert len(store._leases) <= 3


FILLED: Final = """
import asyncio, resource, sys
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Put

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

async def fill(store, chats, turns):
    for chat in range(chats):
        for turn in range(turns):
            key = b"%d %d" % (chat, turn)
            await store.put(f"key-{chat % 5}", Put("ops", key, b"x" * (300 + chat * turn % 3000), 86400))
            await store.get(f"key-{chat % 5}", "ops", [b"%d %d" % (chat, 0)])

async def main():
    most = 24
    before = megabytes()
    store = MemoryStore(most * 2**20, lambda *_: None)
    found = []
    for _ in range(3):
        await fill(store, 200, 100)
        found.append(megabytes() - before)
    print(most, *found)

asyncio.run(main())
"""


@pytest.mark.full
def test_the_process_grows_by_what_the_store_may_hold_and_no_more() -> None:
    """Three times twenty thousand entries of changing sizes, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", FILLED], capture_output=True, text=True, timeout=120, check=True)
    most, first, second, third = map(float, done.stdout.split())
    assert 0.5 * most < first <= 1.2 * most
    assert max(second, third) <= 1.2 * most
