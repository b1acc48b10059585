"""What every store of limits does, of whichever kind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from gateway.server.state.limit_store import LimitStore, Unconfirmed
from gateway.server.state.sqlite import SqliteLimits
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.limits import ValkeyLimits
from gateway.settings import KeySettings
from tests.server.state.limit_stores import LIMIT_STORES, LimitPair

STREAMS: Final = KeySettings(concurrent_streams=3)
RATE: Final = KeySettings(requests_per_minute=4)
BOTH: Final = KeySettings(requests_per_minute=2, concurrent_streams=3)


@pytest.fixture(params=LIMIT_STORES)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LimitPair]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(LIMIT_STORES[request.param](tmp_path))


async def test_running_requests_of_all_processes_count(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", STREAMS, 0, 1)).admitted == 1
    granted = await other.take("a", STREAMS, 0, 5)
    assert (granted.admitted, granted.refused) == (2, "concurrent_streams")
    refused = await mine.take("a", STREAMS, 1, 2)
    assert (refused.admitted, refused.refused) == (0, "concurrent_streams")
    assert (await mine.take("b", STREAMS, 0, 1)).admitted == 1


async def test_statements_replace_what_was_known(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", STREAMS, 0, 3)).admitted == 3
    await mine.state_running({"a": 1, "b": 3})
    assert (await other.take("a", STREAMS, 0, 3)).admitted == 2
    await mine.state_running({"a": 0})
    assert (await other.take("a", STREAMS, 2, 3)).admitted == 1
    assert (await other.take("b", STREAMS, 0, 1)).admitted == 0


async def test_what_a_process_says_of_itself_is_not_counted_twice(pair: LimitPair) -> None:
    mine, _ = pair
    for running in range(3):
        assert (await mine.take("a", STREAMS, running, 1)).admitted == 1
    assert (await mine.take("a", STREAMS, 3, 1)).admitted == 0
    # After requests have ended without a statement.
    assert (await mine.take("a", STREAMS, 1, 3)).admitted == 2


async def test_a_rate_is_that_of_all_processes(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", RATE, 0, 3)).admitted == 3
    granted = await other.take("a", RATE, 0, 3)
    assert (granted.admitted, granted.refused) == (1, "requests_per_minute")
    refused = await mine.take("a", RATE, 0, 1)
    assert refused.admitted == 0
    # Four requests of 15 seconds each.
    assert 55 < refused.due_s <= 60
    assert granted.due_s == pytest.approx(refused.due_s, abs=5)


async def test_what_is_refused_uses_nothing_up(pair: LimitPair) -> None:
    mine, other = pair
    first = await mine.take("a", BOTH, 0, 9)
    assert (first.admitted, first.refused) == (2, "requests_per_minute")
    for _ in range(5):
        assert (await other.take("a", BOTH, 0, 1)).admitted == 0
    refused = await other.take("a", BOTH, 0, 1)
    assert refused.due_s <= first.due_s
    # No place was taken by what the rate refused.
    assert (await other.take("a", STREAMS, 0, 3)).admitted == 1


async def test_of_many_at_once_as_many_as_the_limit_allows_are_admitted(pair: LimitPair) -> None:
    limits = KeySettings(concurrent_streams=7)
    running = [0, 0]

    async def one(number: int) -> int:
        admitted = (await pair[number % 2].take("a", limits, running[number % 2], 1)).admitted
        running[number % 2] += admitted
        return admitted

    for _ in range(10):
        await asyncio.gather(one(0), one(1))
    assert sum(running) == 7


async def test_what_was_admitted_alone_is_counted_once(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", RATE, 0, 1)).admitted == 1
    counted = await mine.take("a", RATE, 0, 0, Unconfirmed(2, 2, 40))
    assert counted.admitted == 0 and counted.due_s == pytest.approx(45, abs=5)
    granted = await other.take("a", RATE, 0, 3)
    assert (granted.admitted, granted.refused) == (1, "requests_per_minute")


async def test_a_call_whose_answer_was_lost_counts_nothing_twice(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", RATE, 0, 2)).admitted == 2
    lose_answers(mine)
    assert (await mine.take("a", RATE, 0, 1, Unconfirmed(2, 2, 30))).admitted == 1
    assert (await other.take("a", RATE, 0, 3)).admitted == 1


async def test_a_call_that_was_given_up_changes_nothing_after_the_next_one(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", BOTH, 0, 0, Unconfirmed(1, 1, 30))).admitted == 0
    lose_answers(mine)
    with pytest.raises(StoreUnavailable, match="given up"):
        await mine.take("a", BOTH, 0, 1)
    assert (await other.take("a", BOTH, 0, 3)).admitted == 1
    assert (await other.take("a", STREAMS, 0, 3)).admitted == 3


async def test_a_long_time_alone_costs_no_more_than_a_minute(pair: LimitPair) -> None:
    mine, other = pair
    assert (await mine.take("a", RATE, 0, 0, Unconfirmed(1000, 900, 55))).due_s == pytest.approx(60, abs=5)
    assert (await mine.take("b", RATE, 0, 0, Unconfirmed(1000, 0, 0))).due_s <= 0
    assert (await other.take("b", RATE, 0, 5)).admitted == 4


def lose_answers(store: LimitStore) -> None:
    """Have a process not know what the store has confirmed, as if its answers had come too late."""
    assert isinstance(store, SqliteLimits | ValkeyLimits)
    store._confirmed.clear()


async def test_a_ping_of_a_working_store_raises_nothing(pair: LimitPair) -> None:
    await pair[0].ping()
