"""What the keeper puts back, and what it never does: with a scripted provider, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.server.state.keeper import MOST_ENTRY
from gateway.server.state.store import Put, StoreUnavailable
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, python_process, running_gateway
from tests.server.backend import END, HEAD, Connection, FaultyBackend, Script, answer, chunk, faulty_backend
from tests.server.samples import total

Message: TypeAlias = dict[str, Any]
# The other profiles whose providers want the text of the reasoning, and how many of the turns with calls before and
# behind the last question get it back.
PLAIN: Final[Mapping[str, int]] = {"kimi-thinking": 1, "glm": 1, "minimax": 2}
ASK: Final[Message] = {"role": "user", "content": "Weather in Rome?"}
LOST: Final = "STATE_MISSING"


def call(call_id: str = "call_1", arguments: str = '{"city": "Rome"}', **extra: Any) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}, **extra}


def said(*calls: Message, content: str | None = None, **fields: Any) -> Message:
    return {"role": "assistant", "content": content, **({"tool_calls": [*calls]} if calls else {}), **fields}


def results(*call_ids: str, content: str = "sunny") -> list[Message]:
    return [{"role": "tool", "tool_call_id": call_id, "content": content} for call_id in call_ids]


def dropped(message: Message) -> Message:
    """The message as most clients keep it: role, text and calls, without any other field."""
    calls = [{name: one[name] for name in ("id", "type", "function")} for one in message.get("tool_calls", ())]
    return said(*calls, content=message["content"])


class Provider:
    """Answers with the messages that it is given, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Message] = []
        self.finish = ""
        self.refusal = ""
        self.script: Script | None = None

    async def __call__(self, connection: Connection) -> None:
        if self.script is not None:
            await self.script(connection)
            return
        if self.refusal:
            body = msgspec.json.encode({"error": {"message": self.refusal, "type": "invalid_request_error"}})
            await connection.send(answer("400 Bad Request", body, b"content-type: application/json"))
            return
        message = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        finish = self.finish or ("tool_calls" if "tool_calls" in message else "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = msgspec.json.encode({"id": "c", "object": "chat.completion", "choices": [choice]})
        await connection.send(answer("200 OK", body, b"content-type: application/json"))


class Scene:
    """A gateway in front of the provider. The model `m` has the profile of DeepSeek, `g` that of Gemini, `o` that of
    OpenRouter; `m2` and `g2` are other models of the same backends, `other` has another credential."""

    def __init__(self, provider: Provider, backend: FaultyBackend, gateway: RunningGateway) -> None:
        self.provider = provider
        self.backend = backend
        self.gateway = gateway

    async def ask(
        self, *messages: Message, model: str = "m", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        return await self.gateway.client.post(
            "/v1/chat/completions",
            json={"model": model, "messages": [*messages]},
            headers={"x-dragoman-explain": "1", **(headers or {})},
        )

    async def answered(self, message: Message, *messages: Message, **how: Any) -> None:
        """The provider answers with this message."""
        self.provider.answers = [message]
        response = await self.ask(*(messages or (ASK,)), **how)
        assert response.status_code == 200, response.text

    async def sent(self, *messages: Message, **how: Any) -> tuple[list[Message], list[str]]:
        """The messages of the assistant as the provider gets them, and the notices about state."""
        self.provider.answers = [said(content="done")]
        response = await self.ask(*messages, **how)
        body = msgspec.json.decode(self.backend.seen[-1][1])
        noted = response.json().get("dragoman", response.json().get("error", {})).get("diagnostics", [])
        rules = [notice["rule"] for notice in noted if notice["stage"] == "state"]
        return [message for message in body["messages"] if message["role"] == "assistant"], rules

    async def outcomes(self, outcome: str) -> float:
        text = (await self.gateway.client.get("/metrics")).text
        return total(text, f'gateway_replays_total{{outcome="{outcome}"}}')


def settings(base_url: str, **more: Json) -> dict[str, Json]:
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": base_url}
    deepseek: dict[str, Json] = {**entry, "profile": "thinking", "api_key_env": "KEEPER_TEST_KEY"}
    return {
        "keeper": {"enabled": True},
        # A busy machine must not look like a slow store.
        "state": {"deadline_ms": 5000},
        "profiles": {"thinking": {"base": "deepseek-thinking", "reasoning_missing": None}},
        "backends": {
            "m": deepseek,
            "other": {**deepseek, "api_key_env": "KEEPER_TEST_OTHER_KEY"},
            "g": {**entry, "profile": "gemini"},
            "o": {**entry, "profile": "openrouter"},
            **{name: {**entry, "profile": name} for name in PLAIN},
        },
        "models": {
            "m": {"backend": "m"},
            "m2": {"backend": "m"},
            "other": {"backend": "other", "name": "m"},
            "g": {"backend": "g"},
            "g2": {"backend": "g"},
            "o": {"backend": "o"},
            **{name: {"backend": name} for name in PLAIN},
            "off": {"backend": "m", "name": "m", "keeper": {"enabled": False}},
        },
        **more,
    }


Start: TypeAlias = Callable[..., Any]


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setenv("KEEPER_TEST_KEY", "sk-one-of-two")
    monkeypatch.setenv("KEEPER_TEST_OTHER_KEY", "sk-two-of-two")
    async with AsyncExitStack() as stack:

        async def begin(**more: Json) -> Scene:
            provider = Provider()
            backend = await stack.enter_async_context(faulty_backend(provider))
            gateway = await stack.enter_async_context(running_gateway(settings(backend.base_url, **more)))
            return Scene(provider, backend, gateway)

        yield begin


@pytest.fixture
async def scene(start: Start) -> Scene:
    scene: Scene = await start()
    return scene


THOUGHT: Final = said(call(), content="", reasoning_content="Rome it is.")


async def test_a_client_that_keeps_the_state_is_left_alone(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, {**THOUGHT, "reasoning_content": "Mine."}, *results("call_1"))
    assert (message["reasoning_content"], rules) == ("Mine.", ["STATE_PRESENT"])
    assert await scene.outcomes("present") == 1


async def test_dropped_reasoning_is_put_back(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert message == {**THOUGHT, "reasoning_content": "Rome it is."}
    assert rules == ["STATE_RESTORED"]
    assert (await scene.outcomes("kept"), await scene.outcomes("restored")) == (1, 1)


@pytest.mark.parametrize("field", [{}, {"reasoning_content": ""}])
async def test_an_empty_reasoning_that_the_provider_requires_is_put_back(scene: Scene, field: Message) -> None:
    await scene.answered(said(call(), content="", **field))
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert (message["reasoning_content"], rules) == ("", ["STATE_RESTORED"])


async def test_a_turn_without_calls_needs_no_reasoning(scene: Scene) -> None:
    await scene.answered(said(content="Hi.", reasoning_content="A greeting."))
    ((message,), rules) = await scene.sent(ASK, said(content="Hi."), ASK)
    assert (message, rules) == (said(content="Hi."), [])
    assert await scene.outcomes("kept") == 0


EDITS: Final[Mapping[str, tuple[Sequence[Message], bool]]] = {
    "its text": ((ASK, {**dropped(THOUGHT), "content": "I look it up."}), True),
    "the ids": ((ASK, said(call("other"), content="")), True),
    "the question": (({**ASK, "content": "What about Rome?"}, dropped(THOUGHT)), True),
    "the ids and the question": (({**ASK, "content": "What about Rome?"}, said(call("other"), content="")), False),
    "the arguments": ((ASK, said(call(arguments='{"city": "Paris"}'), content="")), False),
    "the number of calls": ((ASK, said(call(), call("call_2"), content="")), False),
}


@pytest.mark.parametrize("edit", EDITS)
async def test_what_a_client_may_edit(scene: Scene, edit: str) -> None:
    messages, found = EDITS[edit]
    await scene.answered(THOUGHT)
    ids = [one["id"] for one in messages[1]["tool_calls"]]
    ((message,), rules) = await scene.sent(*messages, *results(*ids))
    assert rules == (["STATE_RESTORED"] if found else [LOST])
    assert message.get("reasoning_content") == ("Rome it is." if found else None)


async def test_what_trim_removes_takes_its_state_along(start: Start) -> None:
    scene = await start(models={"m": {"backend": "m", "max_history_messages": 2, "trim_step": 1}})
    await scene.answered(THOUGHT)
    history = [
        ASK,
        dropped(THOUGHT),
        *results("call_1"),
        said(content="Sunny."),
        ASK,
        said(content="Still sunny."),
        ASK,
    ]
    messages, rules = await scene.sent(*history)
    assert messages == [said(content="Still sunny.")]
    assert rules == ["STATE_RESTORED"]


async def test_parallel_calls_get_the_state_of_the_first(scene: Scene) -> None:
    signed = call("a", extra_content={"google": {"thought_signature": "sig"}})
    await scene.answered(said(signed, call("b", '{"city": "Paris"}'), content=""), model="g")
    bare = said(call("a"), call("b", '{"city": "Paris"}'), content="")
    ((message,), rules) = await scene.sent(ASK, bare, *results("a", "b"), model="g")
    assert message["tool_calls"] == [signed, call("b", '{"city": "Paris"}')]
    assert rules == ["STATE_RESTORED"]


async def test_details_of_reasoning_are_put_back_unmodified(scene: Scene) -> None:
    details = [{"type": "reasoning.encrypted", "data": "x", "index": 0}]
    await scene.answered(said(content="Hi.", reasoning_details=details), model="o")
    ((message,), rules) = await scene.sent(ASK, said(content="Hi."), ASK, model="o")
    assert (message["reasoning_details"], rules) == (details, ["STATE_RESTORED"])


@pytest.mark.parametrize("profile", PLAIN)
async def test_each_provider_gets_the_reasoning_of_the_turns_that_it_wants(scene: Scene, profile: str) -> None:
    second = said(call("call_2", '{"city": "Paris"}'), content="", reasoning_content="Paris as well.")
    await scene.answered(THOUGHT, model=profile)
    history = [ASK, dropped(THOUGHT), *results("call_1"), said(content="Sunny."), {**ASK, "content": "And in Paris?"}]
    await scene.answered(second, *history, model=profile)
    messages, rules = await scene.sent(*history, dropped(second), *results("call_2"), model=profile)
    sent = [message.get("reasoning_content") for message in messages]
    assert sent == ["Rome it is." if PLAIN[profile] > 1 else None, None, "Paris as well."]
    assert rules == ["STATE_RESTORED"] * PLAIN[profile]


async def test_no_more_is_put_into_a_request_than_one_chat_may_have(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = said(call("call_2"), content="", reasoning_content="Once more.")
    await scene.answered(THOUGHT)
    await scene.answered(second, ASK, THOUGHT, *results("call_1"))
    monkeypatch.setattr("gateway.server.state.keeper.MOST_CHAT", 40)
    messages, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), dropped(second), *results("call_2"))
    assert [message.get("reasoning_content") for message in messages] == [None, "Once more."]
    assert rules == [LOST, "STATE_RESTORED"]


async def test_details_that_come_in_pieces_return_whole(scene: Scene) -> None:
    async def streaming(connection: Connection) -> None:
        pieces = [{"type": "reasoning.text", "index": 0, "text": text} for text in ("I ", "greet.")]
        deltas: list[Message] = [{"reasoning_details": [piece]} for piece in pieces]
        deltas += [
            {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s"}]},
            {"content": "Hi."},
        ]
        chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        frames = [chunk(b"data: " + msgspec.json.encode(one) + b"\n\n") for one in chunks]
        await connection.send(HEAD, *frames, chunk(b"data: [DONE]\n\n"), END)

    scene.provider.script = streaming
    asked = {"model": "o", "messages": [ASK], "stream": True}
    assert (await scene.gateway.client.post("/v1/chat/completions", json=asked)).text.endswith("data: [DONE]\n\n")
    scene.provider.script = None
    ((message,), _) = await scene.sent(ASK, said(content="Hi."), ASK, model="o")
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "I greet.", "signature": "s"}
    ]


async def test_repeated_ids_are_told_apart_by_what_stands_before_them(scene: Scene) -> None:
    paris = {**ASK, "content": "And again?"}
    await scene.answered(THOUGHT)
    again = {**THOUGHT, "reasoning_content": "Once more."}
    history = [ASK, dropped(THOUGHT), *results("call_1"), said(content="Sunny."), paris]
    await scene.answered(again, *history)
    (messages, rules) = await scene.sent(*history, dropped(again), *results("call_1"))
    assert [one.get("reasoning_content") for one in messages] == ["Rome it is.", None, "Once more."]
    assert rules == ["STATE_RESTORED", "STATE_RESTORED"]


async def test_answers_that_look_the_same_are_ambiguous_and_neither_is_put_back(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    await scene.answered({**THOUGHT, "reasoning_content": "Other thoughts."})
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert ("reasoning_content" in message, rules) == (False, ["STATE_AMBIGUOUS"])


async def test_the_same_answer_twice_is_not_ambiguous(scene: Scene) -> None:
    for _ in range(2):
        await scene.answered(THOUGHT)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == ["STATE_RESTORED"]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_that_was_cut_leaves_nothing(scene: Scene, finish: str) -> None:
    scene.provider.finish = finish
    await scene.answered(THOUGHT)
    scene.provider.finish = ""
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]
    assert await scene.outcomes("kept") == 0


async def test_a_state_that_is_too_large_is_not_kept(scene: Scene) -> None:
    await scene.answered({**THOUGHT, "reasoning_content": "x" * MOST_ENTRY})
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert (rules, await scene.outcomes("oversize")) == ([LOST], 1)


@pytest.mark.parametrize("model", ["m2", "other"])
async def test_no_state_goes_to_another_model_or_credential(scene: Scene, model: str) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), model=model)
    assert ("reasoning_content" in message, rules) == (False, [LOST])
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == ["STATE_RESTORED"]


SIGNED: Final = said(call(extra_content={"google": {"thought_signature": "sig"}}), content="")


async def test_a_signature_of_another_model_that_the_client_carries_is_dropped(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g2")
    assert (message, rules) == (dropped(SIGNED), ["STATE_FOREIGN"])
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g")
    assert (message, rules) == (SIGNED, ["STATE_PRESENT"])


async def test_a_signature_of_unknown_origin_is_the_clients_own_matter(scene: Scene) -> None:
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g")
    assert (message, rules) == (SIGNED, ["STATE_PRESENT"])


async def test_another_credential_after_a_reload_gets_nothing_either(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.answered(THOUGHT)
    monkeypatch.setenv("KEEPER_TEST_KEY", "sk-another-one")
    changed = settings(scene.backend.base_url, log={"file": None})
    changed["server"] = {"api_keys_env": None}
    backends = changed["backends"]
    assert isinstance(backends, dict)
    # An entry that differs makes a new backend.
    backends["m"] = {**backends["m"], "max_concurrent": 7}  # type: ignore[dict-item]
    await scene.gateway.app.gateway_state.change(read_settings(changed))
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]


async def test_no_key_gets_the_state_of_another_one(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPER_TEST_CLIENTS", "one-secret-key,two-secret-key,three-secret-key")
    keys: dict[str, Json] = {"env-3": {"keeper": False}}
    scene = await start(server={"api_keys_env": "KEEPER_TEST_CLIENTS"}, keys=keys)
    one, two, three = [{"authorization": f"Bearer {name}-secret-key"} for name in ("one", "two", "three")]
    await scene.answered(THOUGHT, headers=one)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=two)
    assert rules == [LOST]
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=one)
    assert rules == ["STATE_RESTORED"]
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=three)
    assert rules == []


async def test_what_is_refused_is_not_sent_again(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    scene.provider.refusal = "Corrupted thought signature."
    refused = await scene.ask(ASK, dropped(SIGNED), *results("call_1"), model="g")
    error = refused.json()["error"]
    assert (refused.status_code, error["rule"]) == (400, "STATE_INVALID")
    assert "unchanged" in error["advice"]
    # One request, and no second one behind the client's back.
    assert len(scene.backend.seen) == 2
    scene.provider.refusal = ""
    ((message,), rules) = await scene.sent(ASK, dropped(SIGNED), *results("call_1"), model="g")
    assert (message, rules) == (dropped(SIGNED), [LOST])
    assert await scene.outcomes("refused") == 1


async def test_a_refusal_for_another_reason_drops_nothing(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    scene.provider.refusal = "The model is too tired."
    assert (await scene.ask(ASK, dropped(SIGNED), *results("call_1"), model="g")).status_code == 400
    scene.provider.refusal = ""
    _, rules = await scene.sent(ASK, dropped(SIGNED), *results("call_1"), model="g")
    assert rules == ["STATE_RESTORED"]


async def test_what_is_missing_is_told_before_the_provider_refuses_it(scene: Scene) -> None:
    scene.provider.refusal = "The reasoning_content in the thinking mode must be passed back to the API."
    response = await scene.ask(ASK, dropped(THOUGHT), *results("call_1"))
    error = response.json()["error"]
    assert (response.status_code, error["rule"]) == (400, "REASONING_MISSING")
    assert "keeper" in error["advice"]
    assert [(one["rule"], one["index"]) for one in error["diagnostics"] if one["stage"] == "state"] == [(LOST, 1)]


async def test_explain_tells_what_would_be_put_back_and_counts_nothing(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    lost = said(call("call_2"), content="")
    messages = [ASK, dropped(THOUGHT), *results("call_1"), lost, *results("call_2")]
    response = await scene.gateway.client.post("/v1/explain", json={"model": "m", "messages": messages})
    told = response.json()
    rules = [(one["rule"], one["index"]) for one in told["diagnostics"] if one["stage"] == "state"]
    assert rules == [("STATE_RESTORED", 1), (LOST, 3)]
    assert told["wire"][1]["reasoning_content"] == "Rome it is."
    assert (await scene.outcomes("restored"), len(scene.backend.seen)) == (0, 1)


@pytest.mark.parametrize("off", ["model", "header"])
async def test_off_nothing_is_kept_and_nothing_is_put_back(scene: Scene, off: str) -> None:
    how: dict[str, Any] = {"model": "off"} if off == "model" else {"headers": {"x-dragoman-state": "off"}}
    await scene.answered(THOUGHT, **how)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]
    await scene.answered({**THOUGHT, "tool_calls": [call("call_9")]})
    ((message,), rules) = await scene.sent(ASK, said(call("call_9"), content=""), *results("call_9"), **how)
    assert ("reasoning_content" in message, rules) == (False, [])


OFF: Final = """
import sys
from gateway.server.api.app import create_app
from gateway.settings import read_settings

create_app(read_settings({"log": {"file": None}, "server": {"api_keys_env": None}}))
print([name for name in sys.modules if "keeper" in name or "kept_state" in name])
"""


async def test_a_gateway_without_the_keeper_does_not_even_import_it(tmp_path: Path) -> None:
    async with python_process(tmp_path, "-c", OFF) as process:
        output, _ = await process.communicate()
    assert output.decode().strip() == "[]"


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
