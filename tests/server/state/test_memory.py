"""What only the memory store promises: bounds of each space, an exact clock, and no growth."""

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
    store = MemoryStore(2**20, unseen, {"ops": 10_000})
    await store.put("a", Put("sum", b"k", b"x" * 50_000, 60))
    for key in range(50):
        await store.put("a", put(key, 1000))
    found = {used.space: used for used in (await store.stats()).usage}
    assert found["ops"].bytes <= 10_000 and found["ops"].entries == 10_000 // (1000 + OVERHEAD + 2)
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
