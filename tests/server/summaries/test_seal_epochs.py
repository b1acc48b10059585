"""What one machine forgets no other one opens, where they share a store; the folder of each holds its own epochs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.server.state.store import StoreUnavailable
from gateway.testing.faulty import faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.summaries.scripted import ScriptedModel, compress_settings

INPUT: Final = [{"type": "message", "role": "user", "content": "Find out why the service fails at its start."}]


@asynccontextmanager
async def machines(folder: Path, store: str) -> AsyncIterator[tuple[RunningGateway, RunningGateway]]:
    """Two gateways with one store and one key, and a folder each."""
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(ScriptedModel().script))
        settings = compress_settings(backend.base_url)
        found = []
        for name in ("one", "two"):
            state: dict[str, Json] = {"store": store, "folder": str(folder / name), "deadline_ms": 10_000}
            found.append(await stack.enter_async_context(running_gateway({**settings, "state": state})))
        yield found[0], found[1]


async def compacted(gateway: RunningGateway) -> list[Any]:
    made = await gateway.client.post("/v1/responses/compact", json={"model": "m", "input": INPUT})
    assert made.status_code == 200, made.text
    output: list[Any] = made.json()["output"]
    return output


async def status(gateway: RunningGateway, output: list[Any]) -> int:
    response = await gateway.client.post("/v1/responses", json={"model": "m", "input": output})
    if response.status_code == 400:
        assert response.json()["error"]["code"] == "invalid_compaction"
    return response.status_code


async def test_what_is_forgotten_in_a_shared_store_no_machine_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_STATE_KEY", "k" * 64)
    async with machines(tmp_path, f"sqlite:{tmp_path / 'state.db'}") as (one, two):
        output = await compacted(one)
        assert [await status(machine, output) for machine in (one, two)] == [200, 200]
        await one.app.gateway_state.store.forget("-")
        assert [await status(machine, output) for machine in (one, two)] == [400, 400]
        later = await compacted(two)
        assert [await status(machine, later) for machine in (one, two)] == [200, 200]
        await two.app.gateway_state.store.purge()
        assert [await status(machine, later) for machine in (one, two)] == [400, 400]


async def test_while_the_store_is_away_what_was_learnt_holds_and_the_rest_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_STATE_KEY", "k" * 64)
    async with machines(tmp_path, f"sqlite:{tmp_path / 'state.db'}") as (one, two):
        before = await compacted(one)
        await one.app.gateway_state.store.forget("-")
        later = await compacted(one)
        assert [await status(two, output) for output in (before, later)] == [400, 200]

        async def away(tenant: str, within_s: float | None = None) -> bytes:
            raise StoreUnavailable("down", "")

        monkeypatch.setattr(two.app.gateway_state.store, "epoch", away)
        assert [await status(two, output) for output in (before, later)] == [400, 200]


async def test_what_is_being_compacted_when_its_key_is_forgotten_is_never_opened() -> None:
    model = ScriptedModel()
    model.gate.clear()
    async with faulty_backend(model.script) as backend, running_gateway(compress_settings(backend.base_url)) as gateway:
        running = asyncio.create_task(compacted(gateway))
        await model.has_begun()
        gateway.app.gateway_state.state_keys.folder.forget("-")
        model.gate.set()
        assert await status(gateway, await running) == 400
        assert await status(gateway, await compacted(gateway)) == 200
