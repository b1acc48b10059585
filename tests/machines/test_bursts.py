"""Tests two gateways that are busy: 200 conversations at once, a store that works, and nothing that was not stored.

The deadline is that of the shipped file. The lag of a gateway, and its wait for a connection, are no failure of the
store; so the number of failures is none on any machine, however slow.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import httpx
import pytest
import pytest_asyncio

from tests.machines.client_requests import client
from tests.machines.cluster import GATEWAYS, Cluster, cluster
from tests.machines.installed import needs
from tests.machines.traffic import Outcomes

pytestmark = [pytest.mark.state, needs("nginx")]

CHAINS: Final = 200
TURNS: Final = 5
DEADLINE_MS: Final = 20
GOOD: Final = "stored"
BROKEN: Final = frozenset({"cut", "gateway_unreachable"})


class Burst:
    """`outcomes` counts the turns; `running` those that are in flight. Each turn continues the one before it, or begins
    anew where that one was not stored."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = Counter()
        self.running = 0

    async def run(self, clients: Sequence[httpx.AsyncClient]) -> None:
        await asyncio.gather(*(self._chain(clients[number % len(clients)]) for number in range(CHAINS)))

    async def _chain(self, client: httpx.AsyncClient) -> None:
        previous: str | None = None
        for _ in range(TURNS):
            self.running += 1
            outcome, previous = await _turn(client, previous)
            self.running -= 1
            self.outcomes[outcome] += 1


async def _turn(client: httpx.AsyncClient, previous: str | None) -> tuple[str, str | None]:
    """What became of a turn, and the response that the next one may continue."""
    body = {"model": "m", "input": "Hello again", "previous_response_id": previous}
    try:
        response = await client.post("/v1/responses", json=body, timeout=120)
    except httpx.TransportError:
        return "cut", previous
    answer = response.json()
    if response.status_code != 200:
        return str(answer["error"]["code"]), previous
    return (GOOD, answer["id"]) if answer["store"] else ("not stored", None)


@pytest_asyncio.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, deadline_ms=DEADLINE_MS, keys={}) as opened:
        yield opened


@pytest.fixture
async def clients(machines: Cluster) -> AsyncIterator[Sequence[httpx.AsyncClient]]:
    """Clients that can have a connection for each of their conversations."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(machines, "nginx")) for _ in range(CHAINS // 50)]


async def test_200_conversations_at_once_are_stored(machines: Cluster, clients: Sequence[httpx.AsyncClient]) -> None:
    for _ in range(3):
        burst = Burst()
        await burst.run(clients)
        assert burst.outcomes == {GOOD: CHAINS * TURNS}, machines.log(GATEWAYS[0])[-2000:]


async def test_a_killed_gateway_takes_only_its_turns_in_flight(
    machines: Cluster, clients: Sequence[httpx.AsyncClient]
) -> None:
    burst = Burst()
    running = asyncio.create_task(burst.run(clients))
    while burst.outcomes.total() < CHAINS:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    in_flight = burst.running
    await machines.kill(GATEWAYS[0])
    await running
    failed = burst.outcomes - Counter({GOOD: burst.outcomes[GOOD]})
    assert burst.outcomes.total() == CHAINS * TURNS
    assert failed.keys() <= BROKEN and failed.total() <= in_flight, machines.log(GATEWAYS[1])[-2000:]
