"""The keeper and its store: what is still being written, several workers, and a store that fails."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.conversation import Json
from gateway.server.state.store import Put, StoreUnavailable
from gateway.testing.gateway import running_gateway
from tests.server.state.keeper.scene import ASK, THOUGHT, Scene, Start, dropped, results, settings


async def test_a_client_that_answers_at_once_finds_what_is_still_being_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.state.keeper.SETTLE_S", 30)
    store = scene.gateway.app.gateway_state.store
    put, may_write = store.put, asyncio.Event()

    async def later(tenant: str, entry: Put) -> bool:
        await may_write.wait()
        return await put(tenant, entry)

    monkeypatch.setattr(store, "put", later)
    # The client has its answer before anything is stored of it.
    await scene.answered(THOUGHT)
    sent = asyncio.create_task(scene.sent(ASK, dropped(THOUGHT), *results("call_1")))
    await asyncio.sleep(0.05)
    assert len(scene.backend.seen) == 1
    may_write.set()
    _, rules = await sent
    assert rules == ["STATE_RESTORED"]


async def test_workers_share_what_is_kept(start: Start, tmp_path: Path) -> None:
    state: dict[str, Json] = {"store": f"sqlite:{tmp_path / 'state.db'}", "deadline_ms": 5000}
    scene = await start(state=state)
    async with running_gateway(settings(scene.backend.base_url, state=state)) as worker:
        other = Scene(scene.provider, scene.backend, worker)
        await scene.answered(THOUGHT)
        # Between workers no write is waited for.
        await scene.gateway.app.gateway_state.store.written()
        ((message,), rules) = await other.sent(ASK, dropped(THOUGHT), *results("call_1"))
        assert (message["reasoning_content"], rules) == ("Rome it is.", ["STATE_RESTORED"])
        # The other one has seen another answer that looks the same.
        await other.answered({**THOUGHT, "reasoning_content": "Other thoughts."})
        await worker.app.gateway_state.store.written()
        _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
        assert rules == ["STATE_AMBIGUOUS"]


async def test_workers_that_keep_the_same_answer_at_once_lose_neither(start: Start, tmp_path: Path) -> None:
    state: dict[str, Json] = {"store": f"sqlite:{tmp_path / 'state.db'}", "deadline_ms": 5000}
    scene = await start(state=state)
    async with running_gateway(settings(scene.backend.base_url, state=state)) as worker:
        other = Scene(scene.provider, scene.backend, worker)
        scene.provider.answers = [THOUGHT]
        # The same anchors, of two models: whichever comes first, the other one is put beside it.
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                asked, model = (scene, "m") if number % 2 else (other, "m2")
                group.create_task(asked.ask(ASK, model=model))
        for one in (scene, other):
            await one.gateway.app.gateway_state.store.written()
        for model in ("m", "m2"):
            _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), model=model)
            assert rules == ["STATE_RESTORED"]


async def test_a_store_that_fails_changes_no_answer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("down", "on purpose")

    await scene.answered(THOUGHT)
    store = scene.gateway.app.gateway_state.store
    for name in ("get", "put", "epoch", "extend"):
        monkeypatch.setattr(store, name, fail)
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert ("reasoning_content" in message, rules) == (False, ["STORE_DOWN"])
