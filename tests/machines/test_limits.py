"""Tests the limits of keys on two gateways with two workers each, while all works, while one is killed, and while one
does not reach the store.

The law: whatever happens, the store counts each admitted request once, as soon as it can be told. What a store that
answers admits is never more than a minute's requests at once and then one at a time at the pace of the limit, by its
own clock. A gateway that it does not answer admits as much for each of its workers. A kill loses requests that were
counted, and no count.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from gateway.server.state.valkey.names import rate_name, running_name
from tests.machines.client_requests import ask, ask_at_once, hold
from tests.machines.cluster import GATEWAYS, Cluster, cluster
from tests.machines.installed import needs

pytestmark = [pytest.mark.state, pytest.mark.asyncio(loop_scope="module"), needs("nginx")]

A_MINUTE: Final = 12
GAP_S: Final = 60 / A_MINUTE
STREAMS: Final = 3
WORKERS: Final = 2
RATE: Final = {"requests_per_minute": A_MINUTE}
LIMITS: Final = {"bob": RATE, "carol": {"concurrent_streams": STREAMS}, "dave": RATE, "erin": RATE, "frank": RATE}
BACK_S: Final = 40.0
# Refusals in a row after which every worker has refused one.
REFUSALS: Final = 24


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A request waits for the store until it answers, however busy this machine is, unless it is cut off."""
    async with cluster(tmp_path_factory.mktemp("cluster"), deadline_ms=1000, keys=LIMITS) as opened:
        yield opened


class Rate:
    """What the store has counted of a key's requests, since one that was the first. While requests come faster than
    the limit's pace, each of them has moved the due time by the same amount."""

    def __init__(self, machines: Cluster, owner: str) -> None:
        self._machines = machines
        self._name = rate_name(owner)
        self._first_s = 0.0

    async def begin(self, name: str, owner: str) -> None:
        """Send the first request."""
        assert (await ask(self._machines, name, owner)).status_code == 200
        self._first_s = await self._due_s()

    async def counted(self) -> int:
        """Return how many requests the store has counted."""
        return 1 + round((await self._due_s() - self._first_s) / GAP_S)

    async def allowed(self) -> int:
        """Return how many requests could have been admitted until now."""
        async with self._machines.admin as admin:
            seconds, micros = await admin.time()
        return A_MINUTE + int((seconds + micros / 1e6 - self._first_s + GAP_S) / GAP_S)

    async def counts(self, requests: int) -> None:
        """Wait until the store has counted so many."""
        async with asyncio.timeout(BACK_S):
            while await self.counted() != requests:  # noqa: ASYNC110 (another process changes it)
                await asyncio.sleep(0.2)

    async def _due_s(self) -> float:
        async with self._machines.admin as admin:
            found: Any = await admin.get(self._name)
        return float(found) / 1e6


async def exhaust(machines: Cluster, *names: str, owner: str) -> int:
    """Send requests until every worker refuses them. Return how many were admitted."""
    admitted, refused = 0, 0
    while refused < REFUSALS:
        for name in names:
            good = (await ask(machines, name, owner)).status_code == 200
            admitted, refused = admitted + good, 0 if good else refused + 1
    return admitted


async def test_exactly_as_many_are_admitted_as_the_store_counts(machines: Cluster) -> None:
    rate = Rate(machines, "bob")
    await rate.begin("gateway1", "bob")
    admitted = 1 + await ask_at_once(machines, *GATEWAYS * 15, owner="bob")
    assert admitted == await rate.counted()
    assert A_MINUTE <= admitted <= await rate.allowed()
    admitted += await exhaust(machines, *GATEWAYS, owner="bob")
    assert admitted == await rate.counted() <= await rate.allowed()
    # A restarted machine knows nothing itself: it asks the store.
    await machines.kill("gateway1")
    await machines.start_gateway("gateway1")
    admitted += await exhaust(machines, *GATEWAYS, owner="bob")
    assert admitted == await rate.counted() <= await rate.allowed()


async def test_a_kill_loses_requests_and_no_count(machines: Cluster) -> None:
    rate = Rate(machines, "dave")
    await rate.begin("gateway2", "dave")

    async def asked() -> int:
        """1: admitted; 0: refused; a killed gateway ends the request, which may have been counted."""
        try:
            return int((await ask(machines, "gateway1", "dave")).status_code == 200)
        except httpx.TransportError:
            return 0

    asking = [asyncio.create_task(asked()) for _ in range(20)]
    await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    await machines.kill("gateway1")
    admitted = 1 + sum(await asyncio.gather(*asking))
    lost = await rate.counted() - admitted
    assert lost >= 0
    await machines.start_gateway("gateway1")
    admitted += await exhaust(machines, *GATEWAYS, owner="dave")
    assert admitted + lost == await rate.counted() <= await rate.allowed()


async def test_concurrent_requests_are_those_of_all_machines(machines: Cluster) -> None:
    async with AsyncExitStack() as stack:
        assert [await hold(machines, GATEWAYS[number % 2], "carol", stack) for number in range(3)] == [True] * 3
        assert await ask_at_once(machines, *GATEWAYS * 8, owner="carol") == 0
    # Their ends are stated later.
    assert await freed(machines) == STREAMS


async def test_the_requests_of_a_killed_machine_stop_counting(machines: Cluster) -> None:
    async with AsyncExitStack() as stack:
        assert [await hold(machines, "gateway2", "carol", stack) for _ in range(3)] == [True] * 3
        assert (await ask(machines, "gateway1", "carol")).status_code == 429
        await machines.kill("gateway2")
        await machines.start_gateway("gateway2")
        assert await freed(machines) == STREAMS


async def freed(machines: Cluster, most: int = STREAMS) -> int:
    """Hold streams until so many run, which were not free at once. Return how many can run on both machines."""
    async with AsyncExitStack() as stack, asyncio.timeout(BACK_S):
        held = 0
        while held < most:
            name = GATEWAYS[held % 2]
            held += await hold(machines, name, "carol", stack)
            await asyncio.sleep(0.2)
        return held + sum([await hold(machines, name, "carol", stack) for name in GATEWAYS * 4])


@asynccontextmanager
async def without_store(machines: Cluster) -> AsyncIterator[None]:
    """Let nothing from the first gateway reach the store while the block runs."""
    if not machines.separate:
        pytest.skip("NOT RUN: no network namespaces can be made here")
    one, store = machines.hosts["gateway1"], machines.hosts["store"]
    await one.cut(store)
    try:
        yield
    finally:
        await one.join(store)


@contextmanager
def every_connection(machines: Cluster, name: str, worker: int) -> Iterator[None]:
    """Let one worker of a gateway accept every connection while the block runs: the others are stopped. The kernel may
    otherwise give all connections to the same worker."""
    others = [pid for pid in machines.workers(name) if pid != worker]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


async def test_what_a_machine_admits_without_the_store_is_counted_afterwards(machines: Cluster) -> None:
    rate = Rate(machines, "erin")
    await rate.begin("gateway2", "erin")
    admitted = 1 + await ask_at_once(machines, *GATEWAYS, owner="erin")
    async with without_store(machines):
        # Fewer than the limit in all.
        admitted += await ask_at_once(machines, *["gateway1"] * 5, "gateway2", owner="erin")
        assert admitted == 9
    await rate.counts(admitted)
    admitted += await exhaust(machines, *GATEWAYS, owner="erin")
    assert admitted == await rate.counted() <= await rate.allowed()


async def test_each_worker_without_the_store_has_the_limits_for_itself(machines: Cluster) -> None:
    async with AsyncExitStack() as stack:
        assert await hold(machines, "gateway1", "carol", stack) and await hold(machines, "gateway2", "carol", stack)
        async with without_store(machines):
            began, held, alone = time.monotonic(), [], 0
            for worker in machines.workers("gateway1"):
                with every_connection(machines, "gateway1", worker):
                    held += [await hold(machines, "gateway1", "carol", stack) for _ in range(STREAMS + 1)]
                    alone += await exhaust(machines, "gateway1", owner="frank")
            # What runs already counts.
            assert sum(held) == WORKERS * STREAMS - 1
            paces = 1 + (time.monotonic() - began) / GAP_S
            assert WORKERS * A_MINUTE <= alone <= WORKERS * (A_MINUTE + paces)
            # The others have the limit of all, of which a machine that is silent for ten seconds uses nothing.
            async with asyncio.timeout(BACK_S):
                held = [True]
                while sum(held) < STREAMS:
                    held.append(await hold(machines, "gateway2", "carol", stack))
                    await asyncio.sleep(0.2)
            assert not await hold(machines, "gateway2", "carol", stack)
        # All are known again: more than the limit, so that nobody gets any.
        await stated(machines, "carol", WORKERS * STREAMS + STREAMS)
        assert await ask_at_once(machines, *GATEWAYS * 4, owner="carol") == 0
        await exhausted(machines, "frank")
    assert await freed(machines) == STREAMS


async def stated(machines: Cluster, owner: str, running: int) -> None:
    """Wait until the store knows of so many running requests."""
    async with asyncio.timeout(BACK_S), machines.admin as admin:
        while running != sum(int(one.split(b":")[0]) for one in await admin.hvals(running_name(owner))):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def exhausted(machines: Cluster, owner: str) -> None:
    """Wait until the other gateway, too, admits no more than one request at the pace of the limit."""
    async with asyncio.timeout(BACK_S):
        while await ask_at_once(machines, "gateway2", "gateway2", owner=owner) == 2:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
