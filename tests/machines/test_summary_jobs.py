"""Tests the job of a gateway that is stopped beyond its lease, or whose key is forgotten, with real processes."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest

from bench.load_test.store_servers import PROGRAMS, server
from gateway.core.conversation import Json
from gateway.testing.gateway import GatewayCommand, gateway_command
from tests.machines.faulty_proxy import FaultyProxy, faulty_proxy
from tests.machines.installed import needs
from tests.promises.test_summaries import LONG, PATIENCE_S, SIGHTED, STORED, ask, scripted_model, shown
from tests.server.summaries.scripted import WINDOW, ScriptedModel, agent_history

pytestmark = [pytest.mark.state, needs()]

KEY: Final = "k" * 32
# A lease of 30 s has to end by itself, and a busy machine takes longer.
LEASE_ENDS_S: Final = 90
STORES: Final = (*PROGRAMS, "sqlite")
LOST: Final = 'gateway_summaries_total{backend="b",outcome="lost"} 1.0'


class TwoGateways(msgspec.Struct):
    """Two gateways on one store, each one process, and the model behind them. `proxy` stands between the first one and
    the store, where that is a server."""

    one: GatewayCommand
    other: GatewayCommand
    model: ScriptedModel
    proxy: FaultyProxy | None
    folder: Path

    async def begin_job(self) -> None:
        """Have the first gateway begin a summary, which the model does not answer until its gate is open."""
        await ask(self.one.base_url, agent_history(LONG))
        await shown(self.one.base_url, SIGHTED)
        self.model.gate.clear()
        await ask(self.one.base_url, agent_history(LONG + 1))
        await self.model.has_begun()

    def stop(self) -> None:
        os.kill(self.one.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.one.process.pid, signal.SIGCONT)

    async def other_stores(self) -> None:
        """Ask the other gateway until it has done the work, which it may begin when the lease has ended."""
        async with asyncio.timeout(LEASE_ENDS_S):
            while STORED not in await metrics(self.other):
                await ask(self.other.base_url, agent_history(LONG + 1))
                await asyncio.sleep(0.5)

    async def sends_same_bytes(self) -> bool:
        """Return whether the model gets the same request from both, with a summary in it."""
        sent = []
        for gateway in (self.other, self.one):
            await ask(gateway.base_url, agent_history(LONG + 2))
            assert len(self.model.sent) < len(agent_history(LONG))
            sent.append(self.model.bodies[-1])
        return sent[0] == sent[1]


async def metrics(gateway: GatewayCommand) -> str:
    async with httpx.AsyncClient(base_url=gateway.base_url, timeout=PATIENCE_S, trust_env=False) as client:
        return (await client.get("/metrics")).text


def leases(metrics: str) -> dict[str, int]:
    """What has become of leases, by outcome."""
    return {name: int(count) for name, count in re.findall(r'gateway_leases_total\{outcome="(\w+)"\} (\d+)', metrics)}


@asynccontextmanager
async def two_gateways(kind: str, folder: Path) -> AsyncIterator[TwoGateways]:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(scripted_model())
        proxy, places = None, [f"sqlite:{folder / 'state.db'}"] * 2
        if kind != "sqlite":
            running = await stack.enter_async_context(server(kind, folder))
            proxy = await stack.enter_async_context(faulty_proxy(running.port))
            places = [f"valkey://127.0.0.1:{proxy.port}", running.url]
        gateways = []
        for name, place in zip(("one", "other"), places, strict=True):
            settings: dict[str, Json] = {
                "server": {"port": 0, "api_keys_env": None},
                "log": {"file": None},
                # Only a summary may be lost to a busy machine, not what a request reads.
                "state": {"store": place, "deadline_ms": PATIENCE_S * 1000},
                "compress": {"enabled": True},
                "backends": {"b": {"adapter": "openai_chat", "base_url": model.base_url}},
                "models": {"m": {"backend": "b", "context_length": WINDOW}},
            }
            (folder / name).mkdir()
            command = gateway_command(folder / name, settings, "serve", DRAGOMAN_STATE_KEY=KEY)
            gateways.append(await stack.enter_async_context(command))
        await asyncio.gather(*(gateway.wait_ready() for gateway in gateways))
        yield TwoGateways(gateways[0], gateways[1], model, proxy, folder)


@pytest.mark.parametrize("kind", STORES)
async def test_a_gateway_that_is_stopped_while_the_model_writes_changes_nothing(kind: str, tmp_path: Path) -> None:
    async with two_gateways(kind, tmp_path) as pair:
        await pair.begin_job()
        pair.stop()
        # From now on both get an answer: the first one in its socket, for later.
        pair.model.gate.set()
        await pair.other_stores()
        pair.resume()
        await shown(pair.one.base_url, LOST)
        # The attempt was committed, and no summary.
        assert leases(await metrics(pair.one))["committed"] == 1
        assert len(pair.model.summarised) == 2 and STORED not in await metrics(pair.one)
        assert await pair.sends_same_bytes()


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_gateway_that_is_stopped_before_its_commit_is_refused(kind: str, tmp_path: Path) -> None:
    """It is stopped at its first word to the store after the model's answer."""
    async with two_gateways(kind, tmp_path) as pair:
        assert pair.proxy is not None
        await pair.begin_job()
        pair.proxy.hold(pair.stop)
        pair.model.gate.set()
        await pair.other_stores()
        pair.proxy.let_go()
        pair.resume()
        await shown(pair.one.base_url, LOST)
        ended = leases(await metrics(pair.one))
        # The attempt was committed, and the summary refused.
        assert (ended["committed"], ended["refused"]) == (1, 1)
        assert len(pair.model.summarised) == 2 and STORED not in await metrics(pair.one)
        assert await pair.sends_same_bytes()


@pytest.mark.parametrize("kind", STORES)
async def test_a_running_job_is_stopped_when_its_key_is_forgotten(kind: str, tmp_path: Path) -> None:
    async with two_gateways(kind, tmp_path) as pair:
        await pair.begin_job()
        arguments = ("state", "forget", "-", "--settings", str(tmp_path / "other" / "settings.json"))
        async with gateway_command(tmp_path, None, *arguments, DRAGOMAN_STATE_KEY=KEY) as forget:
            assert await forget.ended() == (0, "")
        # The model has not answered.
        await shown(pair.one.base_url, LOST)
        assert not pair.model.gate.is_set()
        pair.model.gate.set()
        await ask(pair.one.base_url, agent_history(LONG + 2))
        assert pair.model.sent == agent_history(LONG + 2) and len(pair.model.summarised) == 1
