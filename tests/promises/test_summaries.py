"""Summaries with several processes on one store: one call for one history, nothing of a killed worker, the same bytes
after a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import faulty_backend
from gateway.testing.gateway import GatewayCommand, gateway_command
from tests.server.summaries.scripted import WINDOW, Messages, ScriptedModel, agent_history

# Above the trigger, and within the window for some rounds more.
LONG: Final = 28
# So long a busy machine may take until what follows from a request is done.
PATIENCE_S: Final = 30


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel()
    async with faulty_backend(model.script) as backend:
        model.base_url = backend.base_url
        yield model


@asynccontextmanager
async def gateway(folder: Path, model: ScriptedModel, workers: int = 1) -> AsyncIterator[GatewayCommand]:
    """Runs a gateway as a command, with a store in a file of this folder."""
    settings: dict[str, Json] = {
        "server": {"port": 0, "workers": workers, "api_keys_env": None},
        "log": {"file": None},
        "state": {"store": f"sqlite:{folder / 'state.db'}", "encrypt": False, "deadline_ms": PATIENCE_S * 1000},
        "compress": {"enabled": True},
        "backends": {"b": {"adapter": "openai_chat", "base_url": model.base_url}},
        "models": {"m": {"backend": "b", "context_length": WINDOW}},
    }
    async with gateway_command(folder, settings, "serve") as command:
        await command.wait_ready()
        yield command


async def ask(base_url: str, messages: Messages) -> None:
    # A new connection for each request: any worker may take it.
    async with httpx.AsyncClient(base_url=base_url, timeout=PATIENCE_S, trust_env=False) as client:
        response = await client.post("/v1/chat/completions", json={"model": "m", "messages": messages})
    assert response.status_code == 200, response.text


async def metric(base_url: str, line: str) -> bool:
    async with httpx.AsyncClient(base_url=base_url, timeout=PATIENCE_S, trust_env=False) as client:
        return line in (await client.get("/metrics")).text


async def shown(base_url: str, line: str) -> None:
    """Waits until the metrics of all workers have this line."""
    async with asyncio.timeout(PATIENCE_S):
        while not await metric(base_url, line):  # noqa: ASYNC110 (a scrape tells it, no event)
            await asyncio.sleep(0.05)


STORED: Final = 'gateway_summaries_total{backend="b",outcome="stored"} 1.0'
SIGHTED: Final = 'gateway_notices_total{rule="SUMMARY_CANDIDATE",stage="state"} 1.0'


@pytest.mark.full
async def test_fifty_equal_requests_to_four_workers_cost_one_summary(tmp_path: Path) -> None:
    async with scripted_model() as model, gateway(tmp_path, model, workers=4) as command:
        await ask(command.base_url, agent_history(LONG))
        await shown(command.base_url, SIGHTED)
        await asyncio.gather(*(ask(command.base_url, agent_history(LONG + 1)) for _ in range(50)))
        await shown(command.base_url, STORED)
        assert len(model.summarised) == 1
        await ask(command.base_url, agent_history(LONG + 2))
        assert len(model.summarised) == 1 and len(model.sent) < len(agent_history(LONG))


@pytest.mark.full
async def test_a_worker_that_is_killed_leaves_nothing_and_another_one_does_the_work(tmp_path: Path) -> None:
    async with scripted_model() as model:
        async with gateway(tmp_path, model) as command:
            model.gate.clear()
            await ask(command.base_url, agent_history(LONG))
            await shown(command.base_url, SIGHTED)
            await ask(command.base_url, agent_history(LONG + 1))
            await model.has_begun()
            command.process.kill()
            await command.process.wait()
        model.gate.set()
        async with gateway(tmp_path, model) as command:
            await ask(command.base_url, agent_history(LONG + 2))
            assert model.sent == agent_history(LONG + 2)
            await shown(command.base_url, STORED)
            assert len(model.summarised) == 2


async def test_a_request_is_sent_with_the_same_bytes_after_a_restart(tmp_path: Path) -> None:
    async with scripted_model() as model:
        async with gateway(tmp_path, model) as command:
            await ask(command.base_url, agent_history(LONG))
            await shown(command.base_url, SIGHTED)
            await ask(command.base_url, agent_history(LONG + 1))
            await shown(command.base_url, STORED)
            await ask(command.base_url, agent_history(LONG + 2))
            command.process.kill()
            await command.process.wait()
        async with gateway(tmp_path, model) as command:
            await ask(command.base_url, agent_history(LONG + 2))
        assert len(model.sent) < len(agent_history(LONG))
        assert model.bodies[-1] == model.bodies[-2]
