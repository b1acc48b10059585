"""State in the words of Anthropic and of OpenAI Responses: its order, its items, and how far it is valid."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import Connection, FaultyBackend, answer, faulty_backend

Body: TypeAlias = dict[str, Any]
ARGUMENTS: Final = {"city": "Rome"}
ASK: Final = {"role": "user", "content": "Weather in Rome?"}
CALLED: Final[Body] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
}
BARE: Final[Body] = {"role": "assistant", "content": "First. Then.", "tool_calls": [CALLED]}
RESULT: Final[Body] = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
BLOCKS: Final[list[Body]] = [
    {"type": "thinking", "thinking": "one", "signature": "s1"},
    {"type": "redacted_thinking", "data": "d1"},
    {"type": "text", "text": "First. "},
    {"type": "text", "text": "Then."},
    {"type": "thinking", "thinking": "two", "signature": "s2"},
    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": ARGUMENTS},
]
# Without ids of its own, as a gateway without a store sends them.
ITEMS: Final[list[Body]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e1"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "First. Then.", "annotations": []}],
    },
    {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "e2"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Rome"}'},
]


def message(content: list[Body], stop: str = "tool_use") -> Body:
    head = {"id": "msg", "type": "message", "role": "assistant", "model": "x", "stop_reason": stop}
    return {**head, "content": content, "usage": {"input_tokens": 1, "output_tokens": 1}}


def response(output: list[Body]) -> Body:
    return {"id": "resp", "object": "response", "status": "completed", "output": output}


class Scene:
    """A gateway whose backend answers with `body`, or refuses with `refusal`."""

    def __init__(self) -> None:
        self.body: Body = {}
        self.refusal: Body = {}
        self.backend: FaultyBackend
        self.gateway: RunningGateway

    async def __call__(self, connection: Connection) -> None:
        status = "400 Bad Request" if self.refusal else "200 OK"
        body = msgspec.json.encode(self.refusal or self.body)
        await connection.send(answer(status, body, b"content-type: application/json"))

    async def post(self, path: str, body: Body) -> tuple[Body, list[str]]:
        """The body that the backend gets, and the notices about state."""
        sent = await self.gateway.client.post(path, json=body, headers={"x-dragoman-explain": "1"})
        said = sent.json()
        noted = said.get("dragoman", said.get("error", {})).get("diagnostics", [])
        rules = [notice["rule"] for notice in noted if notice["stage"] == "state"]
        return msgspec.json.decode(self.backend.seen[-1][1]), rules

    async def chat(self, model: str, *messages: Body, **fields: Json) -> tuple[Body, list[str]]:
        return await self.post("/v1/chat/completions", {"model": model, "messages": [*messages], **fields})


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("KEEPER_TEST_KEY", "sk-one-of-two")
    monkeypatch.setenv("KEEPER_TEST_OTHER_KEY", "sk-two-of-two")
    async with AsyncExitStack() as stack:
        scene = Scene()
        scene.backend = await stack.enter_async_context(faulty_backend(scene))

        def entry(adapter: str, key: str = "KEEPER_TEST_KEY") -> Mapping[str, Json]:
            return {"adapter": adapter, "base_url": scene.backend.base_url, "api_key_env": key}

        backends = {
            "a": entry("anthropic_messages"),
            "r": entry("openai_responses"),
            "r_other": entry("openai_responses", "KEEPER_TEST_OTHER_KEY"),
        }
        models = {
            "a": {"backend": "a"},
            "a2": {"backend": "a"},
            "r": {"backend": "r"},
            "r2": {"backend": "r"},
            "r_other": {"backend": "r_other", "name": "r"},
        }
        settings: dict[str, Any] = {
            "keeper": {"enabled": True},
            # A busy machine must not look like a slow store.
            "state": {"deadline_ms": 5000},
            "backends": backends,
            "models": models,
        }
        scene.gateway = await stack.enter_async_context(running_gateway(settings))
        yield scene


async def test_thinking_returns_signed_redacted_and_in_its_order(scene: Scene) -> None:
    scene.body = message(BLOCKS)
    await scene.chat("a", ASK)
    body, rules = await scene.chat("a", ASK, BARE, RESULT)
    assert rules == ["STATE_RESTORED"]
    content = body["messages"][1]["content"]
    assert [block["type"] for block in content] == ["thinking", "redacted_thinking", "text", "thinking", "tool_use"]
    assert [block for block in content if "thinking" in block["type"]] == [BLOCKS[0], BLOCKS[1], BLOCKS[4]]


async def test_a_client_of_the_same_api_gets_its_blocks_back_as_well(scene: Scene) -> None:
    scene.body = message(BLOCKS)
    fields: Body = {"model": "a", "max_tokens": 9}
    await scene.post("/v1/messages", {**fields, "messages": [ASK]})
    kept = [block for block in BLOCKS if "thinking" not in block["type"]]
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}
    turns = [ASK, {"role": "assistant", "content": kept}, {"role": "user", "content": [result]}]
    body, rules = await scene.post("/v1/messages", {**fields, "messages": turns})
    content = body["messages"][1]["content"]
    assert rules == ["STATE_RESTORED"]
    assert [block["type"] for block in content] == [block["type"] for block in BLOCKS]
    whole = [ASK, {"role": "assistant", "content": BLOCKS}, {"role": "user", "content": [result]}]
    body, rules = await scene.post("/v1/messages", {**fields, "messages": whole})
    assert (body["messages"][1]["content"], rules) == (BLOCKS, ["STATE_PRESENT"])


@pytest.mark.parametrize("block", [0, 1])
async def test_thinking_of_another_model_is_dropped_redacted_or_not(scene: Scene, block: int) -> None:
    blocks = [BLOCKS[block], *BLOCKS[-1:]]
    scene.body = message(blocks)
    fields: Body = {"max_tokens": 9}
    await scene.post("/v1/messages", {**fields, "model": "a", "messages": [ASK]})
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}
    turns = [ASK, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    body, rules = await scene.post("/v1/messages", {**fields, "model": "a2", "messages": turns})
    assert (body["messages"][1]["content"], rules) == (BLOCKS[-1:], ["STATE_FOREIGN"])


async def test_thinking_is_required_only_where_the_request_asks_for_it(scene: Scene) -> None:
    scene.body = message([{"type": "text", "text": "Sunny."}], "end_turn")
    _, rules = await scene.chat("a", ASK, BARE, RESULT)
    assert rules == []
    _, rules = await scene.chat("a", ASK, BARE, RESULT, reasoning_effort="medium")
    assert rules == ["STATE_MISSING"]


async def test_thinking_before_the_last_question_stays_away(scene: Scene) -> None:
    scene.body = message(BLOCKS)
    await scene.chat("a", ASK)
    body, rules = await scene.chat("a", ASK, BARE, RESULT, {"role": "assistant", "content": "Sunny."}, ASK)
    assert rules == []
    assert "thinking" not in str(body)


async def test_items_of_reasoning_return_each_before_its_item(scene: Scene) -> None:
    scene.body = response(ITEMS)
    body, _ = await scene.chat("r", ASK)
    assert body["include"] == ["reasoning.encrypted_content"]
    body, rules = await scene.chat("r", ASK, BARE, RESULT)
    items = body["input"][1:-1]
    assert rules == ["STATE_RESTORED"]
    assert [item["type"] for item in items] == ["reasoning", "message", "reasoning", "function_call"]
    assert [item["encrypted_content"] for item in items if item["type"] == "reasoning"] == ["e1", "e2"]
    assert items[1]["phase"] == "commentary"


async def test_items_are_valid_for_other_models_and_for_no_other_credential(scene: Scene) -> None:
    scene.body = response(ITEMS)
    await scene.chat("r", ASK)
    _, rules = await scene.chat("r2", ASK, BARE, RESULT)
    assert rules == ["STATE_RESTORED"]
    body, rules = await scene.chat("r_other", ASK, BARE, RESULT)
    assert (rules, "encrypted_content" in str(body["input"])) == (["STATE_MISSING"], False)


async def test_items_of_another_credential_that_the_client_carries_are_dropped(scene: Scene) -> None:
    scene.body = response(ITEMS)
    await scene.post("/v1/responses", {"model": "r", "input": [ASK], "store": False})
    output = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    history = {"input": [ASK, *ITEMS, output], "store": False}
    body, rules = await scene.post("/v1/responses", {"model": "r", **history})
    assert (body["input"][1:-1], rules) == (ITEMS, ["STATE_PRESENT"])
    body, rules = await scene.post("/v1/responses", {"model": "r_other", **history})
    assert rules == ["STATE_FOREIGN"]
    assert [item["type"] for item in body["input"][1:-1]] == ["message", "function_call"]


async def test_encrypted_content_that_is_refused_is_forgotten(scene: Scene) -> None:
    scene.body = response(ITEMS)
    await scene.chat("r", ASK)
    text = "The encrypted content e1 could not be verified. Reason: Encrypted content could not be decrypted."
    scene.refusal = {"error": {"message": text, "type": "invalid_request_error", "code": "invalid_encrypted_content"}}
    _, rules = await scene.chat("r", ASK, BARE, RESULT)
    assert rules == ["STATE_RESTORED"]
    scene.refusal = {}
    body, rules = await scene.chat("r", ASK, BARE, RESULT)
    assert (rules, "encrypted_content" in str(body["input"])) == ([], False)


async def test_items_that_no_turn_holds_are_not_lost_to_put_state_back(scene: Scene) -> None:
    scene.body = response(ITEMS)
    await scene.post("/v1/responses", {"model": "r", "input": [ASK], "store": False})
    search: Body = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    bare = [search, *[item for item in ITEMS if item["type"] != "reasoning"]]
    body, _ = await scene.post("/v1/responses", {"model": "r", "input": [ASK, *bare, output], "store": False})
    assert body["input"][1:-1] == bare
