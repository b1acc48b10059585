"""Sends mixed requests through the load balancer, and counts what came of each of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import httpx

# Longer than anything that a client has to wait for, save for a machine that has vanished.
PATIENCE_S: Final = 5.0
# Of each kind more than the load balancer has idle connections to one gateway: a request on such a connection waits for
# as long as the gateway has vanished.
CLIENTS: Final = 18
GOOD: Final = frozenset({"chat whole", "stream whole", "chain continued"})
Outcomes: TypeAlias = "Counter[str]"


class Traffic:
    """`outcomes` since they were last taken."""

    def __init__(self, base_url: str, key: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=base_url, headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=PATIENCE_S
        )
        self._outcomes: Outcomes = Counter()
        self._running = True

    def take(self) -> Outcomes:
        """Return the outcomes since the last call."""
        outcomes, self._outcomes = self._outcomes, Counter()
        return outcomes

    async def run(self) -> None:
        """Send requests until `stop`."""
        async with self._client, asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._visit(list(VISITS)[number % len(VISITS)]))

    def stop(self) -> None:
        """Let the running requests end, and send no more."""
        self._running = False

    async def _visit(self, kind: str) -> None:
        while self._running:
            outcome = await _outcome(VISITS[kind], self._client)
            self._outcomes[f"{kind} {outcome}"] += 1
            await asyncio.sleep(0.03)


async def _outcome(visit: "Visit", client: httpx.AsyncClient) -> str:
    try:
        return await visit(client)
    except httpx.ReadTimeout:
        return "timeout"
    except httpx.TransportError:
        return "cut"


async def chat(client: httpx.AsyncClient) -> str:
    response = await client.post("/v1/chat/completions", json=_hello())
    return "whole" if response.status_code == 200 and _text(response.json()) else _error(response.json())


async def stream(client: httpx.AsyncClient) -> str:
    async with client.stream("POST", "/v1/chat/completions", json={**_hello(), "stream": True}) as response:
        body = (await response.aread()).decode()
    if response.status_code != 200:
        return _error(response.json())
    return "whole" if body.endswith("data: [DONE]\n\n") else "error in the stream"


async def chain(client: httpx.AsyncClient) -> str:
    """A response and one that continues it at once, on whichever machine."""
    first = await client.post("/v1/responses", json={"model": "m", "input": "Hello"})
    if first.status_code != 200:
        return _error(first.json())
    if not first.json()["store"]:
        return "not stored"
    continued = {"model": "m", "input": "And?", "previous_response_id": first.json()["id"]}
    second = await client.post("/v1/responses", json=continued)
    return "continued" if second.status_code == 200 else _error(second.json())


Visit: TypeAlias = Callable[[httpx.AsyncClient], Awaitable[str]]
VISITS: Final[Mapping[str, Visit]] = {"chat": chat, "stream": stream, "chain": chain}


def _hello() -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def _text(body: Any) -> str:
    return str(body["choices"][0]["message"]["content"])


def _error(body: Any) -> str:
    return str(body["error"]["code"])


@asynccontextmanager
async def traffic(base_url: str, key: str) -> AsyncIterator[Traffic]:
    """Traffic to this address until the block ends."""
    sending = Traffic(base_url, key)
    task = asyncio.create_task(sending.run())
    try:
        yield sending
    finally:
        sending.stop()
        await task
