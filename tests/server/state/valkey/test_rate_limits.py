"""Tests the limits of API keys on a server: they hold for all processes together, and a dead process holds nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest
import pytest_asyncio

from gateway.core.errors import GatewayError
from gateway.server.access.rate_limit import KeyUsage, count_request
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.connections import Connections
from gateway.server.state.valkey.rate_limits import ValkeyRateLimits
from gateway.server.state.valkey.store import ValkeyStore
from gateway.settings import KeySettings
from tests.server.state.valkey.servers import Server

UNUSED: Final = KeyUsage()
Limits = tuple[ValkeyRateLimits, ValkeyRateLimits]


@pytest_asyncio.fixture
async def limits(running: Server) -> AsyncIterator[Limits]:
    """Two processes; the second one is believed to be alive for a tenth of a second."""
    connections = Connections(read_address(running.url))
    async with aclosing(connections):
        yield ValkeyRateLimits(connections), ValkeyRateLimits(connections, 0.1)


async def refused(store: ValkeyRateLimits, own: KeyUsage, limits: KeySettings, now: float = 0, key: str = "a") -> str:
    with pytest.raises(GatewayError) as raised:
        await store.acquire(key, own, limits, now)
    assert raised.value.status == 429
    return f"{raised.value} {raised.value.headers['retry-after']}"


async def test_the_rate_holds_for_all_processes_together(limits: Limits) -> None:
    entry = KeySettings(requests_per_minute=30)
    for number in range(30):
        await limits[number % 2].acquire("a", UNUSED, entry, time.monotonic())
    for one in limits:
        assert "requests_per_minute. 2" in await refused(one, UNUSED, entry)
    assert (await limits[0].acquire("b", UNUSED, entry, 0)).running == 1


async def test_the_rate_is_that_of_one_process(limits: Limits) -> None:
    """The script and `count_request` are two forms of one rule: they agree about each request and each wait."""
    entry = KeySettings(requests_per_minute=120)
    usage = UNUSED
    refusals = 0
    for _ in range(125):
        now = time.monotonic()
        if abs(usage.due - 59.5 - now) < 0.1:
            # The server reads its clock later: too close to tell.
            await asyncio.sleep(0.15)
            continue
        try:
            expected = count_request(usage, entry, now)
        except GatewayError as error:
            assert str(error) in await refused(limits[0], UNUSED, entry, now)
            refusals += 1
            await asyncio.sleep(0.3)
            continue
        seen = await limits[0].acquire("a", usage, entry, now)
        assert seen.running == expected.running and abs(seen.due - expected.due) < 0.1
        usage = seen
    assert refusals


async def test_running_requests_of_all_processes_count(limits: Limits) -> None:
    entry = KeySettings(concurrent_streams=3)
    mine, other = limits
    assert await mine.acquire("a", UNUSED, entry, 0) == KeyUsage(1)
    assert await other.acquire("a", UNUSED, entry, 0) == KeyUsage(1)
    assert await mine.acquire("a", KeyUsage(1), entry, 0) == KeyUsage(2)
    assert "concurrent_streams. 1" in await refused(other, KeyUsage(1), entry)
    await mine.write({"a": 1})
    assert await other.acquire("a", KeyUsage(1), entry, 0) == KeyUsage(2)
    await other.write({"a": 0})
    assert await mine.acquire("a", KeyUsage(1), entry, 0) == KeyUsage(2)
    assert await mine.acquire("a", KeyUsage(2), entry, 0) == KeyUsage(3)
    assert "concurrent_streams" in await refused(mine, KeyUsage(3), entry)


async def test_a_process_that_is_silent_holds_nothing_until_it_writes_again(limits: Limits) -> None:
    entry = KeySettings(concurrent_streams=1)
    mine, dead = limits
    await dead.acquire("a", UNUSED, entry, 0)
    await refused(mine, UNUSED, entry)
    await asyncio.sleep(0.12)
    assert await mine.acquire("a", UNUSED, entry, 0) == KeyUsage(1)
    await dead.write({"a": 1})
    await refused(mine, UNUSED, entry)


async def test_of_many_at_once_as_many_are_admitted_as_may_run(limits: Limits) -> None:
    entry = KeySettings(requests_per_minute=7)
    calls = (limits[number % 2].acquire("a", UNUSED, entry, 0) for number in range(50))
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, KeyUsage) for one in ended) == 7


async def test_a_purge_resets_no_limit(running: Server, store: ValkeyStore) -> None:
    entry = KeySettings(requests_per_minute=1, concurrent_streams=1)
    await store.rate_limits.acquire("a", UNUSED, entry, 0)
    await store.purge()
    await store.forget("a")
    await refused(store.rate_limits, UNUSED, entry)
