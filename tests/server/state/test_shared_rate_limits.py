"""Several processes share one count; if the shared store fails, each counts for itself."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import GatewayError
from gateway.server.access.admission import Admission
from gateway.server.access.rate_limit import Grant, KeyUsage, RateLimits, charge, grant
from gateway.server.state.guard import MOST_FAILURES
from gateway.server.state.limit_store import NONE_UNCONFIRMED, LimitStore, Unconfirmed
from gateway.server.state.process_identity import process_identity
from gateway.server.state.shared_rate_limits import REPEAT_S, SharedRateLimits
from gateway.server.state.sqlite import SqliteLimits
from gateway.server.state.store import StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import KeySettings
from tests.server.state.sqlite.files import LASTING, RECOVERED, lock
from tests.server.state.test_process_identity import OURS, PARENT

STREAMS: Final = KeySettings(concurrent_streams=3)
RATE: Final = KeySettings(requests_per_minute=4)
DEADLINE_S: Final = 0.05
# So that a busy machine is not taken for a slow file; a locked one fails sooner.
PATIENT_S: Final = 5.0


class Counts:
    """What the stores of some processes have in common."""

    def __init__(self) -> None:
        self.due = 0.0
        self.running: dict[tuple[str, str], int] = {}


class ScriptedLimits:
    """A store in memory. While `gate` is not set, calls hang; while `fails`, they fail; `calls` names them."""

    name = "scripted"
    at_once = 1

    def __init__(self, counts: Counts, holder: str) -> None:
        self.counts = counts
        self._holder = holder
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False
        self.calls: list[str] = []

    async def take(
        self, key: str, limits: KeySettings, running: int, wanted: int, unconfirmed: Unconfirmed = NONE_UNCONFIRMED
    ) -> Grant:
        await self._begin(f"take {running}+{wanted}")
        if unconfirmed.counting and limits.requests_per_minute is not None:
            per_minute = limits.requests_per_minute
            self.counts.due = charge(self.counts.due, per_minute, unconfirmed.counting, unconfirmed.due_s, 0)
        others = sum(
            number for (name, holder), number in self.counts.running.items() if name == key and holder != self._holder
        )
        granted = grant(KeyUsage(running + others, self.counts.due), limits, wanted, 0)
        if granted.admitted:
            self.counts.due = granted.due_s
            self.counts.running[key, self._holder] = running + granted.admitted
        return granted

    async def state_running(self, running: Mapping[str, int]) -> None:
        await self._begin(f"state {sum(running.values())}")
        self.counts.running |= {(key, self._holder): number for key, number in running.items()}

    async def ping(self) -> None:
        await self._begin("ping")

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _begin(self, call: str) -> None:
        self.calls.append(call)
        await self.gate.wait()
        if self.fails:
            raise StoreUnavailable("down", "as the test wants")


class Process:
    """The limits of one process, with the keys `a` (as the test says) and `free`."""

    def __init__(
        self, store: LimitStore, limits: KeySettings, now: float = 0.0, deadline_s: float = DEADLINE_S
    ) -> None:
        self.now = now
        self.own = RateLimits()
        self.metrics = Metrics()
        self.shared = SharedRateLimits(store, self.own, lambda: deadline_s, self.metrics, lambda: self.now)
        self.own.limit("a", limits)
        self.own.limit("free", KeySettings())

    async def take(self, key: str = "a") -> bool:
        """Whether one more request is admitted; as `Permit` and the middleware do it."""
        try:
            self.own.acquire(key, self.now)
        except GatewayError as error:
            return self._is_refused(error)
        try:
            await self.shared.confirm(key)
        except GatewayError as error:
            self.release(key)
            return self._is_refused(error)
        except BaseException:
            self.release(key)
            raise
        return True

    def release(self, key: str = "a") -> None:
        self.own.release(key)
        self.shared.release(key)

    async def tick(self) -> None:
        self.shared.tick(self.now)
        await self.quiet()

    async def stated(self) -> None:
        """Settles until the store knows how many requests run, as it does after some seconds."""
        for _ in range(100):
            self.now += 1
            await self.tick()
            if self.shared._keys["a"].stated == self.own.usage["a"].running:
                return
            await asyncio.sleep(0.05)

    async def quiet(self) -> None:
        while tasks := [known.task for known in self.shared._keys.values() if known.task is not None]:
            await asyncio.wait(tasks)

    def _is_refused(self, error: GatewayError) -> bool:
        assert (error.status, error.code) == (429, "rate_limit_exceeded")
        assert int(error.headers["retry-after"]) >= 1
        return False


async def taken(*processes: Process, of: int = 12) -> int:
    """How many requests, taken in turn, are admitted."""
    return sum([await processes[number % len(processes)].take() for number in range(of)])


def scripted(limits: KeySettings, now: float = 0.0) -> tuple[Process, Process, ScriptedLimits]:
    """Two processes, and the store of the first one."""
    counts = Counts()
    store = ScriptedLimits(counts, "one")
    return Process(store, limits, now), Process(ScriptedLimits(counts, "two"), limits, now), store


async def test_limits_hold_for_all_together() -> None:
    one, two, _ = scripted(STREAMS)
    assert await taken(one, two) == 3
    two.release()
    await two.quiet()
    assert (await taken(one), await taken(two)) == (1, 0)
    one, two, _ = scripted(RATE)
    assert await taken(one, two) == 4
    one, two, _ = scripted(RATE)
    assert sum(await asyncio.gather(*(process.take() for process in (one, two) * 6))) == 4


async def test_a_key_without_limits_asks_nothing() -> None:
    one, _, store = scripted(STREAMS)
    for _ in range(9):
        assert await one.take("free")
    for _ in range(9):
        one.release("free")
    one.now = 100
    await one.tick()
    assert store.calls == []


async def test_what_the_own_count_refuses_asks_nothing() -> None:
    one, _, store = scripted(STREAMS)
    assert await taken(one, of=50) == 3
    assert store.calls == ["take 0+1", "take 1+1", "take 2+1"]


async def test_requests_that_come_at_once_are_asked_for_at_once() -> None:
    one, two, store = scripted(KeySettings(concurrent_streams=30))
    store.gate.clear()
    asked = [asyncio.create_task(one.take()) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    store.gate.set()
    assert all(await asyncio.gather(*asked))
    assert len(store.calls) <= 2
    assert await taken(two, of=20) == 10


async def test_at_the_limit_as_many_are_admitted_as_there_is_room() -> None:
    """However they come: none is refused because of another one that is refused, too."""
    one, two, _ = scripted(STREAMS)
    assert await two.take() and await two.take()
    assert sorted(await asyncio.gather(*(one.take() for _ in range(9)))) == [False] * 8 + [True]


async def test_a_request_that_leaves_while_it_asks_takes_no_place() -> None:
    one, two, store = scripted(STREAMS)
    for _ in range(20):
        store.gate.clear()
        asked = [asyncio.create_task(one.take()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in asked:
            task.cancel()
        store.gate.set()
        assert await asyncio.gather(*asked, return_exceptions=True) != [True] * 3
    await one.quiet()
    assert one.own.usage["a"].running == 0
    assert await taken(two) == 3


async def test_what_runs_when_its_limit_comes_is_stated() -> None:
    one, two, _ = scripted(STREAMS)
    assert [await one.take("free") for _ in range(5)] == [True] * 5
    for process in (one, two):
        process.own.limit("free", KeySettings(concurrent_streams=5))
        await process.tick()
    assert not await two.take("free")
    one.release("free")
    await one.quiet()
    assert await two.take("free")


async def test_statements_are_repeated() -> None:
    one, _, store = scripted(STREAMS)
    assert await one.take()
    for now in range(1, 12):
        one.now = float(now)
        await one.tick()
    assert store.calls.count("state 1") == 1 + 11 // REPEAT_S


async def test_a_slow_store_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    one, _, store = scripted(STREAMS)
    store.gate.clear()
    assert await taken(one) == 3
    # Three failures; from then on nothing waits.
    one.release()
    assert await one.take()
    assert [call for call in store.calls if call != "ping"] == ["take 0+1", "take 1+1", "take 2+1"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    store.gate.set()
    await one.shared._guard.aclose()


async def test_after_a_failure_all_is_stated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.state.guard.FIRST_PAUSE_S", 0.001)
    one, two, store = scripted(STREAMS)
    store.fails = True
    assert await taken(one) == 3
    for now in (1.0, 2.0):
        one.now = now
        await one.tick()
    assert await taken(two, of=1) == 1
    store.fails = False
    reopening = one.shared._guard._reopening
    if reopening is not None:
        await reopening
    one.now = 3.0
    await one.tick()
    assert await taken(two) == 0
    for _ in range(3):
        one.release()
    await one.quiet()
    assert await taken(two) == 2


async def test_what_was_admitted_alone_counts_once_the_store_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.state.guard.FIRST_PAUSE_S", 0.001)
    one, two, store = scripted(RATE)
    store.fails = True
    assert await taken(one, of=3) == 3
    store.fails = False
    if (reopening := one.shared._guard._reopening) is not None:
        await reopening
    await one.tick()
    assert "take 0+0" in store.calls
    assert await taken(two, one) == 1
    await one.tick()
    await two.tick()
    assert not await two.take()


async def test_what_is_refused_too_late_has_been_served_and_counts() -> None:
    one, two, store = scripted(RATE)
    assert await taken(two, of=3) == 3
    store.gate.clear()
    # They wait in two calls, each for as long as a request waits, and are served then.
    assert await asyncio.gather(*(one.take() for _ in range(4))) == [True] * 4
    store.gate.set()
    await one.quiet()
    await one.tick()
    # Seven requests, of which a minute's count.
    assert store.counts.due == 60


async def test_what_was_admitted_alone_before_a_pause_counts_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.state.guard.FIRST_PAUSE_S", 0.001)
    one, two, store = scripted(RATE)
    store.fails = True
    assert await taken(one, of=4) == 4
    one.now = 300.0
    assert await taken(one, of=1) == 1
    store.fails = False
    if (reopening := one.shared._guard._reopening) is not None:
        await reopening
    await one.tick()
    assert await taken(two) == 3


@asynccontextmanager
async def on_file(path: Path, limits: KeySettings) -> AsyncIterator[tuple[Process, Process]]:
    """Two that live: this process and its parent."""
    one, two = (Process(SqliteLimits(path, holder), limits, deadline_s=PATIENT_S) for holder in (OURS, PARENT))
    yield one, two
    await one.shared.aclose()
    await two.shared.aclose()


KILLED: Final = """
import asyncio, os, sys
from pathlib import Path
from gateway.server.state.process_identity import process_identity
from gateway.server.state.sqlite import SqliteLimits
from gateway.settings import KeySettings

async def work():
    limits = SqliteLimits(Path(sys.argv[1]), process_identity(os.getpid()))
    await limits.take("a", KeySettings(concurrent_streams=9, requests_per_minute=9), 0, 1)
    def midst(run):
        run.execute("UPDATE places SET running = 8")
        run.execute("UPDATE rates SET due = due + 60")
        # So much that it goes into the file before it is committed.
        run.execute("PRAGMA cache_spill = 1")
        run.execute("PRAGMA cache_size = 1")
        run.executemany("INSERT INTO rates VALUES (?, 0)", [("x" * 500 + str(n),) for n in range(500)])
        print("begun", flush=True)
        sys.stdin.read()
    await limits._database.write(midst)

asyncio.run(work())
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_kill_9_in_the_midst_of_a_transaction_leaves_the_file_as_it_was_before(tmp_path: Path) -> None:
    path = tmp_path / "limits.db"
    with started("-c", KILLED, str(path)) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        async with on_file(path, STREAMS) as (one, two):
            # While it lives it has the file, and nobody waits for it for long.
            assert await one.take() and await two.take()
            process.kill()
            process.wait()
            for running in (one, two):
                await running.stated()
            assert await taken(one, two) == 1
    with sqlite3.connect(path) as seen:
        assert seen.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        [(due,)] = seen.execute("SELECT due FROM rates").fetchall()
        assert due <= time.monotonic() + 60 / 9
    seen.close()


async def test_a_process_that_was_killed_gives_its_places_back(tmp_path: Path) -> None:
    path = tmp_path / "limits.db"
    with started("-c", "input()") as process:
        killed = Process(SqliteLimits(path, process_identity(process.pid)), STREAMS, deadline_s=PATIENT_S)
        async with on_file(path, STREAMS) as (one, two):
            assert await taken(killed) == 3
            assert await taken(one, two) == 0
            process.kill()
            process.wait()
            assert await taken(one, two) == 3
        await killed.shared.aclose()


@pytest.mark.parametrize("limits", [STREAMS, RATE], ids=["streams", "rate"])
@pytest.mark.parametrize("event", [*RECOVERED, *LASTING])
async def test_a_file_that_fails_refuses_nobody_and_lets_nobody_go_on_without_limit(
    tmp_path: Path, event: str, limits: KeySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process then admits as many as the limit says; and when the file can be used, all together do."""
    monkeypatch.setattr("gateway.server.state.guard.FIRST_PAUSE_S", 0.001)
    path = tmp_path / "state" / "limits.db"
    most = limits.concurrent_streams or limits.requests_per_minute or 0
    async with on_file(path, limits) as processes:
        for process in processes:
            assert await process.take("free")
        await processes[0].shared._store.ping()
        undo = (RECOVERED | LASTING)[event](path)
        try:
            assert most <= await taken(*processes) <= 2 * most
        finally:
            if undo is not None:
                undo()
        if event == "replaced":
            remove(path)
        for second in range(1, 13):
            for process in processes:
                process.now = float(second)
                if (reopening := process.shared._guard._reopening) is not None:
                    await reopening
                await process.tick()
        if limits is STREAMS:
            for process in processes:
                while process.own.usage["a"].running:
                    process.release()
                await process.quiet()
            assert await taken(*processes) == most


def remove(path: Path) -> None:
    path.unlink()


async def test_a_lock_of_another_process_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "limits.db"
    async with on_file(path, KeySettings(requests_per_minute=1000)) as (one, _):
        assert await one.take()
        undo = lock(path)
        assert await taken(one, of=100) == 100
        outcomes = {sample.labels[2]: sample.value for sample in one.metrics.state_operations.samples()}
        # The first one was before the lock. Nothing waits after three failures, and no call blocks the loop meanwhile.
        assert outcomes["done"] == 1 and outcomes["slow"] == MOST_FAILURES and outcomes["skipped"] >= 97
        assert undo is not None
        undo()


async def test_what_was_counted_before_the_machine_was_started_again_holds_nobody_up(tmp_path: Path) -> None:
    """The monotonic clock begins anew then."""
    path = tmp_path / "limits.db"
    async with on_file(path, RATE) as (one, _):
        assert await taken(one) == 4
    with sqlite3.connect(path) as later:
        later.execute("UPDATE rates SET due = due + 1e6")
    later.close()
    async with on_file(path, RATE) as (one, _):
        assert await taken(one) == 4


def test_a_clock_jump_changes_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock jumps by years, ahead and back; limits follow the monotonic one."""
    admission = Admission(time.monotonic)
    admission.change(None, {"a": KeySettings(requests_per_minute=1)})
    with admission.admit("a"):
        pass
    for wall in (2e9, 1e8):
        monkeypatch.setattr("time.time", lambda wall=wall: wall)
        with pytest.raises(GatewayError, match="limit requests_per_minute") as caught, admission.admit("a"):
            pass
        assert 55 <= int(caught.value.headers["retry-after"]) <= 60
