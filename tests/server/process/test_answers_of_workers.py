"""Several workers share stored answers through one store, and store none where each would keep its own."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.demo.serve import serve_demo
from gateway.testing.gateway import gateway_command
from tests.server.process.test_workers import crowd_before

FOLLOW_UPS = 500
CLIENTS = 5
LENGTH = 10


def settings(base_url: str, **top: Any) -> dict[str, Any]:
    return {
        "server": {"api_keys_env": None},
        "log": {"file": None},
        "backends": {"b": {"adapter": "openai_chat", "base_url": base_url}},
        "models": {"m": {"backend": "b", "name": "demo-chat"}},
        **top,
    }


async def respond(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post("/v1/responses", json={"model": "m", "input": "Hi", **fields})


async def chain(client: httpx.AsyncClient, length: int) -> int:
    """Continue each answer at once. Return for how many of them the store was too slow, which the answer or its status
    told."""
    previous: str | None = None
    number = 0
    slow: set[int] = set()
    while number <= length:
        sent = await respond(client, stream=number % 2 == 1, previous_response_id=previous)
        last = sent.text.rpartition('"type":"response.completed"')[2]
        if sent.status_code == 503 or '"store":false' in last:
            slow.add(number)
            # The gateway leaves a store that was too slow alone for a while, and would refuse every attempt in it.
            await asyncio.sleep(0.05)
            continue
        assert sent.status_code == 200, f"follow-up {number}: {sent.text}"
        found = re.search(r"resp_\w+", last)
        assert found is not None and '"store":true' in last
        previous = found[0]
        number += 1
    return len(slow)


async def chains(client: httpx.AsyncClient) -> int:
    return sum([await chain(client, LENGTH) for _ in range(FOLLOW_UPS // LENGTH // CLIENTS)])


@pytest.mark.full
async def test_every_immediate_follow_up_finds_its_answer_on_any_worker(tmp_path: Path) -> None:
    async with serve_demo("chat") as demo:
        used = settings(demo.base_url, state={"store": f"sqlite:{tmp_path / 'state'}"})
        async with gateway_command(tmp_path, used, "serve", "--port", "0", "--workers", "2") as gateway:
            await gateway.wait_ready()
            # Each request has a connection of its own, so that it may come to either worker.
            async with crowd_before(gateway) as client:
                slow = await asyncio.gather(*(chains(client) for _ in range(CLIENTS)))
            assert sum(slow) < FOLLOW_UPS / 10
            async with crowd_before(gateway) as client:
                last = (await respond(client)).json()["id"]
                assert (await client.delete(f"/v1/responses/{last}")).status_code == 200
                read = await asyncio.gather(*(client.get(f"/v1/responses/{last}") for _ in range(8)))
                assert {one.status_code for one in read} == {404}


async def test_workers_with_a_memory_each_store_nothing_and_say_so(tmp_path: Path) -> None:
    async with (
        serve_demo("chat") as demo,
        gateway_command(tmp_path, settings(demo.base_url), "serve", "--port", "0", "--workers", "2") as gateway,
    ):
        await gateway.wait_ready()
        async with crowd_before(gateway) as client:
            answers = [(await respond(client)).json() for _ in range(4)]
            assert [answer["store"] for answer in answers] == [False] * 4
            refused = await respond(client, previous_response_id=answers[0]["id"])
            assert refused.json()["error"]["code"] == "previous_response_not_found"
        gateway.process.terminate()
        _, logged = await gateway.ended()
    warnings = [line for line in logged.splitlines() if "WARNING" in line]
    assert len([line for line in warnings if "set state.store" in line]) == 1, logged
