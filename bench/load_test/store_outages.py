"""Runs the mixture of the soak, and conversations that continue, on a store that is killed and started each minute."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from bench.load import Target
from bench.load_test.client_workload import VISITS, Visitor
from bench.load_test.figures import Figure
from bench.load_test.gateway_process import GatewayProcess
from bench.load_test.soak import soak
from bench.load_test.store_servers import server
from gateway.core.conversation import Json
from gateway.server.state.valkey.connections import CONNECTIONS

# The store is away for a third of each minute.
PERIOD_S: Final = 60.0
AWAY_S: Final = 20.0
EXPLAINED: Final = "continued, or told why not"
# A store that cannot be read, and one that has lost what it kept.
_TOLD: Final = frozenset({"store_unavailable", "previous_response_not_found"})


def settings(port: int) -> dict[str, Json]:
    """Returns the settings of a gateway that keeps responses, and counts the limits of every key, in a store."""
    return {
        "state": {"store": f"valkey://127.0.0.1:{port}", "encrypt": False, "prefix_mb": 16},
        "keys": {"*": {"requests_per_minute": 10_000_000, "concurrent_streams": 10_000}},
    }


async def chain(visitor: Visitor) -> str:
    """A stored response, and one that continues it at once."""
    responses = Visitor(Target(visitor.target.url.replace("/chat/completions", "/responses")), 0)
    try:
        return await _continued(responses)
    finally:
        responses.close()


async def _continued(visitor: Visitor) -> str:
    body: dict[str, Json] = {"model": "demo", "input": "Hello"}
    first = await visitor.ask(msgspec.json.encode(body))
    made = msgspec.json.decode(first.body)
    if first.status != 200 or not made["store"]:
        return EXPLAINED if first.status == 200 else f"status {first.status}"
    second = await visitor.ask(msgspec.json.encode({**body, "previous_response_id": made["id"]}))
    if second.status == 200:
        return EXPLAINED
    code = msgspec.json.decode(second.body)["error"]["code"]
    return EXPLAINED if code in _TOLD else str(code)


_VISITS: Final[Mapping[Callable[[Visitor], Awaitable[str]], tuple[int, str]]] = {**VISITS, chain: (30, EXPLAINED)}


async def store_outages(
    gateway_process: GatewayProcess, port: int, folder: Path, minutes: float, tell: Callable[[str], None]
) -> list[Figure]:
    """Measures as the soak does. `port` is that of the store, which runs until the last sample."""
    kills: list[int] = []
    outages = asyncio.create_task(_outages(port, folder, kills))
    try:
        figures = await soak(gateway_process, minutes, tell, visits=_VISITS, pooled=2 * CONNECTIONS)
    finally:
        outages.cancel()
        with suppress(asyncio.CancelledError):
            await outages
    return [Figure("kills of the store", len(kills), least=1), *figures]


async def _outages(port: int, folder: Path, kills: list[int]) -> None:
    while True:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(server("valkey", folder, port=port))
            await asyncio.sleep(PERIOD_S - AWAY_S)
            os.kill(running.pid, signal.SIGKILL)
            kills.append(running.pid)
        await asyncio.sleep(AWAY_S)
