"""The inspector of a gateway with several worker processes shows the requests of all of them, whoever is asked."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.testing.gateway import gateway_command, hello
from tests.server.process.test_workers import TWO, UNREACHABLE, crowd_before

API = "/inspect/api"


async def listed(crowd: httpx.AsyncClient) -> list[dict[str, Any]]:
    answer = await crowd.get(f"{API}/requests")
    assert answer.status_code == 200, answer.text
    requests: list[dict[str, Any]] = answer.json()["requests"]
    return requests


async def seen(crowd: httpx.AsyncClient) -> dict[str, int]:
    workers: dict[str, int] = (await crowd.get(f"{API}/settings")).json()["workers"]
    return workers


async def ask_until_two_have_served(crowd: httpx.AsyncClient, model: str = "demo-chat") -> list[dict[str, Any]]:
    """Returns the requests. Which worker gets one is up to the kernel."""
    found = await listed(crowd)
    async with asyncio.timeout(30):
        while len({one["worker"] for one in found}) < 2:
            await asyncio.gather(*(crowd.post("/v1/chat/completions", json=hello(model)) for _ in range(4)))
            found = await listed(crowd)
    return found


@pytest.mark.full
async def test_any_worker_shows_the_requests_of_all(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "server": {"workers": 2},
        "inspector": {"contents": "always"},
        "backends": {"b": {"adapter": "openai_chat", "base_url": "demo:chat"}},
        "models": {"demo-chat": {"backend": "b"}},
    }
    async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        async with crowd_before(gateway) as crowd:
            async with asyncio.timeout(30):
                while await seen(crowd) != {"seen": 2, "total": 2}:  # noqa: ASYNC110 (another process sets no event)
                    await asyncio.sleep(0.05)
            found = await ask_until_two_have_served(crowd)
            for one in found:
                # Every question may come to any worker.
                answers = [
                    await crowd.get(f"{API}/requests/{one['id']}{part}") for part in ("", "/messages", "/answer")
                ]
                assert [answer.status_code for answer in answers] == [200, 200, 200]
                assert answers[0].json()["summary"]["worker"] == one["worker"]
            # All replace the words alike: what is shown comes of several answers.
            path = f"{API}/requests/{found[0]['id']}/messages"
            shown = {(await crowd.get(path)).content for _ in range(12)}
            assert len(shown) == 1
            exported = await crowd.get(f"{API}/export", params={"id": [one["id"] for one in found]})
            assert exported.json()["requests"] == len(found) and exported.json()["differences"] == []
            async with crowd.stream("GET", f"{API}/stream", params={"after": 0}) as stream:
                workers: set[int] = set()
                async for line in stream.aiter_lines():
                    if line.startswith("data: {"):
                        workers.add(json.loads(line.removeprefix("data: ")).get("worker", 0))
                    if workers >= {1, 2}:
                        break
            assert (await crowd.delete(f"{API}/requests")).status_code == 204
            assert await listed(crowd) == []
        os.kill(gateway.process.pid, signal.SIGTERM)
        status, _ = await gateway.ended()
    assert status == 0


@pytest.mark.full
async def test_any_worker_shows_a_request_that_failed_at_another_while_nobody_watched(tmp_path: Path) -> None:
    async with gateway_command(tmp_path, UNREACHABLE, *TWO) as gateway:
        await gateway.wait_ready()
        async with crowd_before(gateway) as crowd:
            found = await ask_until_two_have_served(crowd, model="m")
            for one in found:
                assert one["contents"] == "kept"
                path = f"{API}/requests/{one['id']}"
                # Every question may come to any worker.
                for _ in range(4):
                    detail = (await crowd.get(path)).json()
                    assert detail["absent"] is None and detail["error"]["code"] == "upstream_connection_error"
                    received = (await crowd.get(f"{path}/received", params={"reveal": 1})).json()
                    assert json.loads(received["views"]["json"]) == hello("m")
