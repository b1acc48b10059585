"""Tests what a failing store costs: no answer but a miss, three waits of one deadline, and half a minute after its end.

The store is a real server, guarded and encrypted as in a gateway; a proxy, the server itself or its process fails.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio
import valkey.asyncio

from bench.load_test.store_servers import PROGRAMS, Server, server
from gateway.server.state.guard import MOST_FAILURES
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.open_store import open_store
from gateway.server.state.store import Put, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings
from tests.machines.faulty_proxy import FaultyProxy, Mode, faulty_proxy
from tests.machines.installed import needs

pytestmark = [pytest.mark.state, needs()]

DEADLINE_S: Final = 0.02
# What a store that works may take on a busy machine.
WORKS_S: Final = 10.0
BACK_S: Final = 30.0
KEYS: Final = {"DRAGOMAN_STATE_KEY": "k" * 32}
DATA: Final = b"what is remembered" * 20


class Failing(msgspec.Struct):
    """A server that is about to fail, the proxy before it, and the store that uses it. `stack` ends what a fault
    starts."""

    server: Server
    proxy: FaultyProxy
    store: GuardedStore
    metrics: Metrics
    folder: Path
    stack: AsyncExitStack

    @property
    def admin(self) -> Any:
        return valkey.asyncio.Valkey(port=self.server.port)

    def outcomes(self, op: str) -> Counter[str]:
        """How operations of this kind have ended."""
        return Counter(
            {
                sample.labels[2]: int(sample.value)
                for sample in self.metrics.state_operations.samples()
                if sample.labels[1] == op
            }
        )


@pytest_asyncio.fixture(params=PROGRAMS)
async def failing(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Failing]:
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(server(request.param, tmp_path))
        proxy = await stack.enter_async_context(faulty_proxy(running.port))
        metrics = Metrics()
        settings = StateSettings(store=f"valkey://127.0.0.1:{proxy.port}")
        store = GuardedStore(open_store(settings, metrics, KEYS), metrics)
        stack.push_async_callback(store.aclose)
        assert await store.put("a", Put("sum", b"k", DATA, 600))
        await _answers(store)
        yield Failing(running, proxy, store, metrics, tmp_path, stack)


async def _answers(store: GuardedStore) -> None:
    # A busy machine is slower than the guard waits.
    for _ in range(100):
        if await got(store) == DATA:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the store never answered in time")


async def got(store: GuardedStore, within_s: float = DEADLINE_S) -> bytes | None:
    """What a request gets: nothing, where the store fails. Any other failure is the test's."""
    try:
        [entry] = await store.get("a", "sum", [b"k"], within_s=within_s)
    except StoreUnavailable:
        return None
    assert entry is None or entry.data == DATA, "another's value"
    return None if entry is None else entry.data


async def stored(store: GuardedStore) -> bool:
    try:
        return await store.put("a", Put("sum", b"k", DATA, 600))
    except StoreUnavailable:
        return False


async def back(failing: Failing) -> None:
    """Wait until the store is used again, for what is promised at most. A server that has lost its entries is used."""
    async with asyncio.timeout(BACK_S):
        while not (await stored(failing.store) and await got(failing.store) == DATA):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def network(mode: Mode) -> Callable[[Failing], Awaitable[None]]:
    return lambda failing: failing.proxy.set(mode)


async def paused(failing: Failing) -> None:
    async with failing.admin as admin:
        await admin.client_pause(4000)


async def stopped(failing: Failing) -> None:
    os.kill(failing.server.pid, signal.SIGSTOP)


async def killed(failing: Failing) -> None:
    os.kill(failing.server.pid, signal.SIGKILL)


async def passes(failing: Failing) -> None:
    await failing.proxy.set("pass")


async def resumes(failing: Failing) -> None:
    os.kill(failing.server.pid, signal.SIGCONT)


async def restarts(failing: Failing) -> None:
    again = server(failing.server.kind, failing.folder, port=failing.server.port)
    await failing.stack.enter_async_context(again)


async def waits(failing: Failing) -> None:
    """It ends by itself."""


Act = Callable[[Failing], Awaitable[None]]
# How it begins, and how it ends.
OUTAGES: Final[Mapping[str, tuple[Act, Act]]] = {
    **{mode: (network(mode), passes) for mode in ("refuse", "reset", "blackhole", "delay", "half", "cut")},
    "CLIENT PAUSE": (paused, waits),
    "SIGSTOP": (stopped, resumes),
    "kill -9": (killed, restarts),
}


@pytest.mark.parametrize("outage", OUTAGES)
async def test_a_store_that_does_not_answer_costs_three_deadlines_and_comes_back(failing: Failing, outage: str) -> None:
    begin, end = OUTAGES[outage]
    before = failing.outcomes("get")
    await begin(failing)
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert [await got(failing.store) for _ in range(200)] == [None] * 200
    seconds = loop.time() - began
    outcomes = failing.outcomes("get") - before
    assert outcomes["skipped"] >= 200 - MOST_FAILURES and outcomes["slow"] + outcomes["down"] <= MOST_FAILURES
    # The waits of the table, and what a busy machine adds to them.
    assert seconds < MOST_FAILURES * DEADLINE_S + 10
    await end(failing)
    await back(failing)


async def test_a_cancelled_request_of_a_silent_store_leaves_its_connections_usable(failing: Failing) -> None:
    await failing.proxy.set("blackhole")
    tasks = [asyncio.create_task(got(failing.store)) for _ in range(100)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    # Far more than their deadline, and less than the last resort of the connections.
    _, waiting = await asyncio.wait(tasks, timeout=2)
    assert not waiting, "a cancellation was lost"
    await failing.proxy.set("pass")
    await back(failing)


async def test_flipped_bytes_are_misses_or_failures_and_never_a_value(failing: Failing) -> None:
    await failing.proxy.set("flip")
    assert {await got(failing.store) for _ in range(50)} == {None}
    await failing.proxy.set("pass")
    await back(failing)


async def test_flipped_bytes_in_the_store_are_counted_misses(failing: Failing) -> None:
    async with failing.admin as admin:
        (name,) = await admin.keys("dg1:*:sum:*")
        value = await admin.get(name)
        for at in range(len(value)):
            await admin.set(name, value[:at] + bytes([value[at] ^ 4]) + value[at + 1 :])
            # The number of the version is not sealed: it decides about a later put, not about what is read.
            assert (await got(failing.store) is None) or at < value.index(b":")
        await admin.set(name, b"foreign")
        assert await got(failing.store) is None
    assert failing.outcomes("get")["skipped"] == 0


async def test_a_full_store_is_read_and_takes_entries_again_when_it_has_room(failing: Failing) -> None:
    async with failing.admin as admin:
        await admin.config_set("maxmemory", 1)
        for _ in range(20):
            assert not await stored(failing.store)
            assert await got(failing.store, WORKS_S) == DATA
        assert failing.outcomes("put")["full"] == 20 and failing.outcomes("get")["skipped"] == 0
        await admin.config_set("maxmemory", 0)
    assert await stored(failing.store)


async def test_a_replica_is_read_and_takes_entries_when_it_becomes_the_primary(failing: Failing) -> None:
    async with failing.admin as admin:
        await admin.replicaof("127.0.0.1", "1")
        for _ in range(20):
            assert not await stored(failing.store)
            assert await got(failing.store, WORKS_S) == DATA
        await admin.replicaof("NO", "ONE")
    assert await stored(failing.store)


@asynccontextmanager
async def other_gateway(failing: Failing) -> AsyncIterator[GuardedStore]:
    """A store of another machine, with the proxy of none."""
    metrics = Metrics()
    settings = StateSettings(store=failing.server.url)
    store = GuardedStore(open_store(settings, metrics, KEYS), metrics)
    yield store
    await store.aclose()


async def test_a_machine_that_was_cut_off_forgets_what_the_others_have_forgotten(failing: Failing) -> None:
    async with other_gateway(failing) as other:
        assert await got(other, WORKS_S) == DATA
        await failing.proxy.set("blackhole")
        assert await got(failing.store) is None
        await other.forget("a")
        await failing.proxy.set("pass")
        async with asyncio.timeout(BACK_S):
            while failing.outcomes("get")["miss"] == 0:
                assert await got(failing.store) is None
                await asyncio.sleep(0.1)
