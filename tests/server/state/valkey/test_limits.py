"""What only limits on a server promise: a dead process holds nothing for long, and a purge resets no limit."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest_asyncio

from bench.load_test.store_servers import Server
from gateway.server.access.rate_limit import KeyUsage, grant
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.limits import ALIVE_S, ValkeyLimits
from gateway.server.state.valkey.store import ValkeyStore
from gateway.settings import KeySettings

ONE: Final = KeySettings(concurrent_streams=1)
Limits = tuple[ValkeyLimits, ValkeyLimits]


@pytest_asyncio.fixture
async def limits(running: Server) -> AsyncIterator[Limits]:
    """Two processes; the second one is believed to be alive for three seconds."""
    address = read_address(running.url)
    async with aclosing(ValkeyLimits(address)) as mine, aclosing(ValkeyLimits(address, 3)) as other:
        yield mine, other


async def admitted(store: ValkeyLimits, limits: KeySettings, running: int = 0, key: str = "a") -> int:
    return (await store.take(key, limits, running, 1)).admitted


async def test_the_rate_is_that_of_one_process(limits: Limits) -> None:
    """The script and `grant` are two forms of one rule: they agree about each number and each time."""
    entry = KeySettings(requests_per_minute=120)
    usage, refusals, trip_s = KeyUsage(), 0, 0.0
    for number in range(80):
        wanted, last_trip_s, now = 1 + number % 4, trip_s, time.monotonic()
        expected, found = grant(usage, entry, wanted, now), await limits[0].take("rate", entry, 0, wanted)
        trip_s = time.monotonic() - now
        # The server has read its clock at some time of the trip, this time and the last one.
        slack_s = last_trip_s + trip_s + 0.01
        if all(abs(usage.due + step * 0.5 - 59.5 - now) > slack_s for step in range(wanted)):
            assert (found.admitted, found.refused) == (expected.admitted, expected.refused)
            assert abs(found.due_s - expected.due_s) < slack_s
            refusals += found.refused is not None
        usage = KeyUsage(0, now + found.due_s)
    assert refusals


async def test_a_process_that_is_silent_holds_nothing_until_it_states_again(limits: Limits) -> None:
    mine, dead = limits
    assert await admitted(dead, ONE) == 1
    assert await admitted(mine, ONE) == 0
    # Before it would end by the time that the product leaves it.
    async with asyncio.timeout(ALIVE_S - 1):
        while await admitted(mine, ONE) == 0:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.1)
    await dead.state_running({"a": 1})
    assert await admitted(mine, ONE) == 0


async def test_a_purge_resets_no_limit(limits: Limits, store: ValkeyStore) -> None:
    entry = KeySettings(requests_per_minute=1, concurrent_streams=1)
    assert await admitted(limits[0], entry, key="kept") == 1
    await store.purge()
    await store.forget("kept")
    assert await admitted(limits[0], entry, key="kept") == 0
