"""Sends single requests to a gateway of the machines, with the key of one of their clients."""

import asyncio
from contextlib import AsyncExitStack

import httpx

from tests.machines.cluster import CLIENT_KEYS, Cluster

HELLO = [{"role": "user", "content": "Hello"}]
# It begins, and then goes on until its client leaves.
STALLED = [{"role": "user", "content": "Count. [[demo:stall]]"}]


def client(cluster: Cluster, name: str, owner: str = "alice") -> httpx.AsyncClient:
    """A client of this gateway."""
    headers = {"authorization": f"Bearer {CLIENT_KEYS[owner]}"}
    return httpx.AsyncClient(base_url=cluster.url(name), headers=headers, trust_env=False, timeout=20)


async def ask(machines: Cluster, name: str, owner: str) -> httpx.Response:
    """A chat request over a connection of its own, which any worker may take."""
    async with client(machines, name, owner) as asking:
        return await asking.post("/v1/chat/completions", json={"model": "m", "messages": HELLO})


async def ask_at_once(machines: Cluster, *names: str, owner: str) -> int:
    """Return how many requests to these gateways are admitted. The others are refused because of a limit."""
    answers = await asyncio.gather(*(ask(machines, name, owner) for name in names))
    assert {answer.status_code for answer in answers} <= {200, 429}
    return sum(answer.status_code == 200 for answer in answers)


async def hold(machines: Cluster, name: str, owner: str, stack: AsyncExitStack) -> bool:
    """Open a stream that goes on until the stack ends. Return whether it was admitted."""
    holding = await stack.enter_async_context(client(machines, name, owner))
    body = {"model": "m", "messages": STALLED, "stream": True}
    response = await stack.enter_async_context(holding.stream("POST", "/v1/chat/completions", json=body))
    assert response.status_code in (200, 429)
    return response.status_code == 200
