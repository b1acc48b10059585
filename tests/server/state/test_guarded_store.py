"""A failing store costs each request at most its deadline, and after three failures nothing at all."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

import pytest

from gateway.server.state.guarded_store import MOST, GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Entry, Failure, Put, Space, StoreUnavailable
from gateway.server.state.stores import DOWN, SLOW, RequestStore
from gateway.server.telemetry.metrics import Metrics
from tests.server.state.faulty_store import FaultyStore

PUT = Put("ops", b"k", b"data", 60)
FAILURES: tuple[Failure, ...] = ("slow", "down", "invalid")


class Guarded:
    """A faulty store, its guard, and what the guard has counted."""

    def __init__(self) -> None:
        self.faulty = FaultyStore()
        self.metrics = Metrics()
        self.store = GuardedStore(self.faulty, self.metrics)

    def counted(self, name: str = "gateway_state_operations_total") -> dict[tuple[str, ...], float]:
        return {one.labels: one.value for one in self.metrics.snapshot().counters if one.name == name}

    async def fail(self, times: int) -> None:
        for _ in range(times):
            with pytest.raises(StoreUnavailable):
                await self.store.get("a", "ops", [b"k"], within_s=0.01)


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    guarded = Guarded()
    yield guarded
    await guarded.store.aclose()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ping after a failure comes soon."""
    monkeypatch.setattr("gateway.server.state.guard.FIRST_PAUSE_S", 0.01)


@pytest.mark.parametrize("fault", FAILURES)
async def test_after_three_failures_nothing_waits_and_a_ping_ends_it(
    guarded: Guarded, quick: None, fault: Failure, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "gateway")
    monkeypatch.setattr("gateway.server.state.guard.PING_S", 0.02)
    await guarded.store.put("a", PUT)
    guarded.faulty.fault = fault
    await guarded.fail(3)
    asked = guarded.faulty.asked
    await guarded.fail(50)
    # Only pings, each after twice the pause of the one before.
    await asyncio.sleep(0.1)
    assert 1 <= guarded.faulty.asked - asked <= 5
    guarded.faulty.fault = None
    assert guarded.store._guard._reopening is not None
    await guarded.store._guard._reopening
    [entry] = await guarded.store.get("a", "ops", [b"k"])
    assert entry is not None and entry.data == b"data"
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert guarded.counted() == {
        ("ops", "put", "done"): 1,
        ("ops", "get", fault): 3,
        ("ops", "get", "skipped"): 50,
        ("ops", "get", "hit"): 1,
    }


async def test_failures_that_do_not_follow_each_other_change_nothing(guarded: Guarded) -> None:
    for _ in range(3):
        guarded.faulty.fault = "down"
        await guarded.fail(2)
        guarded.faulty.fault = None
        await guarded.store.get("a", "ops", [b"k"])
    assert ("ops", "get", "skipped") not in guarded.counted()


async def test_a_full_store_is_still_read(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    await guarded.store.put("a", PUT)
    guarded.faulty.fault = "full"
    for _ in range(10):
        with pytest.raises(StoreUnavailable):
            await guarded.store.put("a", PUT)
    guarded.faulty.fault = None
    assert await guarded.store.get("a", "ops", [b"k"]) != [None]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_the_pauses_double_up_to_half_a_minute() -> None:
    circuit = Guarded().store._guard._circuit
    assert [circuit.fail(circuit.failures) for _ in range(5)] == [False, False, True, False, False]
    assert [circuit.next_pause() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    circuit.succeed()
    assert (circuit.open, circuit.next_pause()) == (False, 1)


async def test_every_operation_has_a_deadline() -> None:
    class Hanging(MemoryStore):
        pass

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    names = ("get", "put", "extend", "delete", "epoch", "forgotten", "acquire", "renew", "release", "commit")
    for name in names:
        setattr(Hanging, name, hang)
    lease = await MemoryStore(1, lambda *_: None).acquire("a", "work", 1)
    assert lease is not None
    calls: list[Callable[[GuardedStore], Awaitable[object]]] = [
        lambda store: store.get("a", "ops", [b"k"]),
        lambda store: store.put("a", PUT),
        lambda store: store.extend("a", "ops", [b"k"], 1),
        lambda store: store.delete("a", "ops", [b"k"]),
        lambda store: store.epoch("a"),
        lambda store: store.forgotten(["a"]),
        lambda store: store.acquire("a", "work", 1),
        lambda store: store.renew(lease),
        lambda store: store.release(lease),
        lambda store: store.commit(lease, [PUT]),
    ]
    for call in calls:
        store = GuardedStore(Hanging(2**20, lambda *_: None), Metrics())
        with pytest.raises(StoreUnavailable) as raised:
            await call(store)
        assert raised.value.reason == "slow"


class Paced(MemoryStore):
    """Answers each read after so many passes of the loop, and after a time."""

    def __init__(self, passes: int = 0, seconds: float = 0.0) -> None:
        super().__init__(2**20, lambda *_: None)
        self._passes = passes
        self._seconds = seconds

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        for _ in range(self._passes):
            await asyncio.sleep(0)
        await asyncio.sleep(self._seconds)
        return await super().get(tenant, space, keys)


async def test_the_lag_of_the_gateway_is_no_time_of_the_store() -> None:
    """Each pass of the loop takes more than the deadline."""

    async def be_busy() -> None:
        while True:
            time.sleep(0.03)  # noqa: ASYNC251
            await asyncio.sleep(0)

    store = GuardedStore(Paced(passes=5), Metrics())
    busy = asyncio.create_task(be_busy())
    request = RequestStore(store, "a", 0.02)
    for _ in range(3):
        assert await request.get("ops", [b"k"]) == [None]
    assert request.take_notices() == []
    busy.cancel()


async def test_a_silent_store_is_found_by_a_busy_gateway(guarded: Guarded) -> None:
    async def be_busy() -> None:
        while True:
            time.sleep(0.005)  # noqa: ASYNC251
            await asyncio.sleep(0)

    busy = asyncio.create_task(be_busy())
    guarded.faulty.fault = "slow"
    await guarded.fail(3)
    asked = guarded.faulty.asked
    await guarded.fail(1)
    assert guarded.faulty.asked == asked
    busy.cancel()


async def test_the_wait_for_a_turn_is_no_time_of_the_store() -> None:
    """All of them together take many times the deadline of each."""
    store = GuardedStore(Paced(seconds=0.002), Metrics())
    found = await asyncio.gather(*(store.get("a", "ops", [b"k"], within_s=0.02) for _ in range(100)))
    assert found == [[None]] * 100


async def test_an_operation_behind_a_silent_one_waits_for_its_own_deadline(guarded: Guarded) -> None:
    guarded.faulty.fault = "slow"
    first = asyncio.create_task(guarded.store.get("a", "ops", [b"k"], within_s=60))
    await asyncio.sleep(0)
    await guarded.fail(1)
    assert guarded.faulty.asked == 1 and not first.done()
    first.cancel()
    guarded.faulty.fault = None
    assert await guarded.store.get("a", "ops", [b"k"]) == [None], "its turn is free again"


@pytest.mark.parametrize("at_once", [1, 16, 50])
async def test_what_fails_together_has_failed_once(guarded: Guarded, at_once: int) -> None:
    guarded.faulty.at_once = at_once
    store = GuardedStore(guarded.faulty, guarded.metrics)
    for burst in range(2):
        guarded.faulty.fault = "slow"
        failed = await asyncio.gather(
            *(store.get("a", "ops", [b"k"], within_s=0.02) for _ in range(50)), return_exceptions=True
        )
        assert all(isinstance(one, StoreUnavailable) and one.reason == "slow" for one in failed), burst
    guarded.faulty.fault = None
    assert await store.get("a", "ops", [b"k"]) == [None]
    assert ("ops", "get", "skipped") not in guarded.counted()


async def test_those_in_line_are_refused_with_the_store(guarded: Guarded) -> None:
    guarded.faulty.fault = "down"
    failed = await asyncio.gather(*(guarded.store.get("a", "ops", [b"k"]) for _ in range(50)), return_exceptions=True)
    assert all(isinstance(one, StoreUnavailable) for one in failed)
    assert (guarded.faulty.asked, guarded.counted()["ops", "get", "skipped"]) == (3, 47)


async def test_the_end_of_a_request_is_no_failure_of_the_store(guarded: Guarded) -> None:
    guarded.faulty.fault = "slow"
    for _ in range(5):
        task = asyncio.create_task(guarded.store.get("a", "ops", [b"k"]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert guarded.counted() == {}


@pytest.mark.parametrize(("fault", "notice"), [("slow", SLOW), ("down", DOWN), ("full", DOWN), ("invalid", DOWN)])
async def test_a_request_reads_misses_from_a_failing_store(guarded: Guarded, fault: Failure, notice: object) -> None:
    guarded.faulty.fault = fault
    request = RequestStore(guarded.store, "a", 0.01)
    assert await request.get("ops", [b"1", b"2"]) == [None, None]
    assert await request.get("sum", [b"3"]) == [None]
    assert request.take_notices() == [notice]
    assert request.take_notices() == []


async def test_all_reads_of_a_request_have_one_deadline(guarded: Guarded) -> None:
    guarded.faulty.fault = "slow"
    request = RequestStore(guarded.store, "a", 0.02)
    for _ in range(20):
        assert await request.get("ops", [b"1"]) == [None]
    assert guarded.faulty.asked == 1
    assert await request.get("ops", []) == []


async def test_leases_are_counted(guarded: Guarded) -> None:
    lease = await guarded.store.acquire("a", "work", 60)
    assert lease is not None and await guarded.store.acquire("a", "work", 60) is None
    assert await guarded.store.commit(lease, [PUT]) and await guarded.store.renew(lease)
    await guarded.store.release(lease)
    assert not await guarded.store.commit(lease, [PUT])
    counted = {labels[0]: value for labels, value in guarded.counted("gateway_leases_total").items()}
    assert counted == dict.fromkeys(("acquired", "busy", "committed", "renewed", "released", "refused"), 1)


async def test_later_writes_are_made_in_order_and_a_failing_one_stops_no_other(guarded: Guarded) -> None:
    done = []

    async def write(number: int) -> None:
        await guarded.store.put("a", Put("ops", b"k", b"%d" % number, 60))
        done.append(number)

    guarded.faulty.fault = "full"
    assert guarded.store.write_later(lambda: write(0))
    await guarded.store.written()
    guarded.faulty.fault = None
    for number in range(1, 9):
        assert guarded.store.write_later(partial(write, number))
    await guarded.store.written()
    assert done == [*range(1, 9)]


async def test_writes_that_come_too_fast_are_dropped_and_counted(guarded: Guarded) -> None:
    guarded.faulty.fault = "slow"
    added = [guarded.store.write_later(lambda: guarded.store.put("a", PUT)) for _ in range(MOST + 50)]
    assert (sum(added), guarded.counted()) == (MOST, {("-", "write_later", "dropped"): 50})
    guarded.faulty.fault = None
    await guarded.store.written()
    assert guarded.counted()["ops", "put", "done"] == MOST


async def test_the_last_writes_are_made_when_the_gateway_stops() -> None:
    guarded = Guarded()
    written = []

    async def write() -> None:
        await guarded.store.put("a", PUT)
        written.append(guarded.faulty._size > 0)

    guarded.store.write_later(write)
    await guarded.store.aclose()
    assert written == [True]


async def test_one_task_pings_however_often_the_circuit_opens(guarded: Guarded, quick: None) -> None:
    guarded.faulty.fault = "down"
    await guarded.fail(3)
    first = guarded.store._guard._reopening
    # An operation that was running all the while succeeds; then the store fails again.
    guarded.store._guard._circuit.succeed()
    await guarded.fail(3)
    assert guarded.store._guard._reopening is first
    guarded.faulty.fault = None
    assert first is not None
    await first
    assert await guarded.store.get("a", "ops", [b"k"]) == [None]
