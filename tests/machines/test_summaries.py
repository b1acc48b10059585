"""Tests that a summary which one gateway has paid for is used by another one, with the same bytes."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from bench.load_test.store_servers import PROGRAMS, server
from gateway.core.conversation import Json
from gateway.testing.gateway import gateway_command
from tests.machines.installed import needs
from tests.promises.test_summaries import LONG, PATIENCE_S, SIGHTED, STORED, ask, metric, scripted_model, shown
from tests.server.summaries.scripted import WINDOW, agent_history

pytestmark = [pytest.mark.state, needs()]

KEY: Final = "k" * 32


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_history_is_summarised_once_for_all_machines(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running, scripted_model() as model:
        settings: dict[str, Json] = {
            "server": {"port": 0, "api_keys_env": None},
            "log": {"file": None},
            "state": {"store": running.url, "deadline_ms": PATIENCE_S * 1000},
            "compress": {"enabled": True},
            "backends": {"b": {"adapter": "openai_chat", "base_url": model.base_url}},
            "models": {"m": {"backend": "b", "context_length": WINDOW}},
        }
        async with (
            gateway_command(tmp_path, settings, "serve", DRAGOMAN_STATE_KEY=KEY) as one,
            gateway_command(tmp_path, settings, "serve", DRAGOMAN_STATE_KEY=KEY) as other,
        ):
            await asyncio.gather(one.wait_ready(), other.wait_ready())
            # The first machine sees the history once; for the second one it is the second sighting.
            await ask(one.base_url, agent_history(LONG))
            await shown(one.base_url, SIGHTED)
            async with asyncio.timeout(PATIENCE_S):
                # On a busy machine the store may miss its deadline, which is a miss and no error.
                while not await metric(other.base_url, STORED):
                    await ask(other.base_url, agent_history(LONG + 1))
                    await asyncio.sleep(0.2)
            bodies = []
            for gateway in (one, other):
                await ask(gateway.base_url, agent_history(LONG + 2))
                assert len(model.sent) < len(agent_history(LONG))
                bodies.append(model.bodies[-1])
            assert len(model.summarised) == 1 and bodies[0] == bodies[1]
