"""The state cache and its store: what is still being written, several workers, and a store that fails."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from bench.load_test.store_servers import PROGRAMS, server
from gateway.core.conversation import Json
from gateway.server.state.store import Put, StoreUnavailable
from gateway.testing.gateway import running_gateway
from tests.server.backend import Connection, answer
from tests.server.state.state_cache.scene import (
    ASK,
    THOUGHT,
    Message,
    Scene,
    Start,
    call,
    dropped,
    results,
    said,
    settings,
)


def held(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Nothing is stored before the event."""
    store = scene.gateway.app.gateway_state.store
    put, may_write = store.put, asyncio.Event()

    async def later(tenant: str, *puts: Put) -> bool:
        await may_write.wait()
        return await put(tenant, *puts)

    monkeypatch.setattr(store, "put", later)
    return may_write


async def test_a_client_that_answers_at_once_finds_what_is_still_being_written(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.state.cached_states.WRITES_S", 30)
    scene = await start(state={"deadline_ms": 20})
    may_write = held(scene, monkeypatch)
    # The client has its answer before anything is stored of it, and is told so.
    scene.provider.answers = [THOUGHT]
    assert rules_of((await scene.ask(ASK)).json()) == ["STATE_UNCONFIRMED"]
    sent = asyncio.create_task(scene.sent(ASK, dropped(THOUGHT), *results("call_1")))
    await asyncio.sleep(0.05)
    assert len(scene.backend.seen) == 1
    may_write.set()
    _, rules = await sent
    assert rules == ["STATE_RESTORED"]


def rules_of(answer: Message) -> list[str]:
    return [notice["rule"] for notice in answer["dragoman"]["diagnostics"] if notice["stage"] == "state"]


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_ends_once_the_state_that_its_provider_requires_is_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    may_write = held(scene, monkeypatch)
    scene.provider.answers = [THOUGHT]
    asked = asyncio.create_task(scene.ask(ASK, stream=streams))
    await asyncio.sleep(0.1)
    assert len(scene.backend.seen) == 1 and not asked.done()
    may_write.set()
    assert (await asked).status_code == 200


async def test_an_answer_whose_provider_accepts_its_absence_waits_for_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = held(scene, monkeypatch)
    scene.provider.answers = [THOUGHT]
    assert rules_of((await scene.ask(ASK, model="minimax")).json()) == []
    assert await scene.outcomes("kept") == 0
    may_write.set()
    await scene.gateway.app.gateway_state.store.written()
    assert await scene.outcomes("kept") == 1


@pytest.mark.parametrize("streams", [False, True])
async def test_the_end_of_an_answer_tells_that_its_state_is_not_stored(
    start: Start, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    scene = await start(state={"deadline_ms": 20})
    may_write = held(scene, monkeypatch)
    scene.provider.answers = [THOUGHT]
    text = (await scene.ask(ASK, stream=streams)).text
    assert "STATE_UNCONFIRMED" in text and "slow" in text
    may_write.set()
    await scene.gateway.app.gateway_state.store.written()
    assert await scene.outcomes("kept") == 1, "it is written all the same"


@pytest.mark.parametrize("kind", ["sqlite", *PROGRAMS])
async def test_ten_agents_find_their_state_on_the_next_of_four_workers(start: Start, tmp_path: Path, kind: str) -> None:
    async with AsyncExitStack() as stack:
        store = f"sqlite:{tmp_path / 'state.db'}"
        if kind != "sqlite":
            store = (await stack.enter_async_context(server(kind, tmp_path))).url
        state: dict[str, Json] = {"store": store, "deadline_ms": 5000, "encrypt": False}
        scene = await start(state=state)
        others = [
            await stack.enter_async_context(running_gateway(settings(scene.backend.base_url, state=state)))
            for _ in range(3)
        ]
        workers = [scene, *(Scene(scene.provider, scene.backend, other) for other in others)]
        scene.provider.script = think

        async def agent(number: int) -> list[str]:
            rules, messages = [], [{"role": "user", "content": f"I am agent {number}."}]
            for step in range(4):
                response = (await workers[(number + step) % 4].ask(*messages)).json()
                rules += rules_of(response)
                said = response["choices"][0]["message"]
                messages += [dropped(said), *results(said["tool_calls"][0]["id"])]
            return rules

        found = Counter(rule for rules in await asyncio.gather(*map(agent, range(10))) for rule in rules)
        assert found == {"STATE_RESTORED": 10 * (1 + 2 + 3)}


async def think(connection: Connection) -> None:
    """Answers with another call, and another thought, each time."""
    asked = msgspec.json.decode(connection.body)["messages"]
    unique = f"{asked[0]['content'].split()[-1].rstrip('.')}_{len(asked)}"
    message = said(call(f"call_{unique}", f'{{"city": "{unique}"}}'), reasoning_content=f"Thought {unique}.")
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = msgspec.json.encode({"id": "c", "object": "chat.completion", "choices": [choice]})
    await connection.send(answer("200 OK", body, b"content-type: application/json"))


async def test_workers_share_what_is_kept(start: Start, tmp_path: Path) -> None:
    state: dict[str, Json] = {"store": f"sqlite:{tmp_path / 'state.db'}", "deadline_ms": 5000}
    scene = await start(state=state)
    async with running_gateway(settings(scene.backend.base_url, state=state)) as worker:
        other = Scene(scene.provider, scene.backend, worker)
        await scene.answered(THOUGHT)
        ((message,), rules) = await other.sent(ASK, dropped(THOUGHT), *results("call_1"))
        assert (message["reasoning_content"], rules) == ("Rome it is.", ["STATE_RESTORED"])
        # The other one has seen another answer that looks the same.
        await other.answered({**THOUGHT, "reasoning_content": "Other thoughts."})
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
