"""Directives in mid-conversation over real sockets: what each backend receives, and what becomes of a call of a tool
that the client has removed."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx
import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.testing.gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The demo backend and the adapter of each model.
WIRES: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "chat": ("chat", {"adapter": "openai_chat"}),
    "messages": ("messages", {"adapter": "anthropic_messages"}),
    "text": ("text", {"adapter": "text"}),
    "warp": ("agent", {"adapter": "warp"}),
    "proto": ("grpc", {"adapter": "proto", "preset": "demo"}),
}
OTHERS: Final = [name for name in WIRES if name != "messages"]
WEATHER: Final[dict[str, Any]] = {
    "name": "get_weather",
    "description": "Tells the weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
QUESTION: Final[dict[str, Any]] = {"role": "user", "content": "What's the weather in Rome?"}
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
SAID: Final[dict[str, Any]] = {"role": "assistant", "content": "Hello."}
NAMED: Final[dict[str, Any]] = {"type": "tool_reference", "name": "get_weather"}
ADDED: Final[dict[str, Any]] = {
    "role": "system",
    "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": WEATHER}}],
}
REMOVED: Final[dict[str, Any]] = {"role": "system", "content": [{"type": "tool_removal", "tool": NAMED}]}
QUICK: Final[dict[str, Any]] = {"role": "system", "content": [], "output_config": {"effort": "low"}}
REMINDER: Final[dict[str, Any]] = {"role": "system", "content": "Look sharp.", "clear_at": "next_user_message"}


class Opened(msgspec.Struct, frozen=True):
    gateway: RunningGateway
    backends: dict[str, DemoBackend]

    async def ask(self, model: str, *messages: Json, **fields: Json) -> httpx.Response:
        body = {"model": model, "max_tokens": 500, "messages": [*messages], **fields}
        headers = {"anthropic-version": "2023-06-01", "x-dragoman-explain": "1"}
        return await self.gateway.client.post("/v1/messages", json=body, headers=headers)

    def received(self, model: str) -> str:
        return json.dumps(self.backends[model].requests[-1].summary, ensure_ascii=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:
        backends = {name: await stack.enter_async_context(serve_demo(kind)) for name, (kind, _) in WIRES.items()}
        entries: dict[str, Json] = {
            name: {**entry, "base_url": backends[name].base_url} for name, (_, entry) in WIRES.items()
        }
        models: dict[str, Json] = {name: {"backend": name} for name in WIRES}
        gateway = await stack.enter_async_context(running_gateway({"backends": entries, "models": models}))
        yield Opened(gateway, backends)


def kinds(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [block["type"] for block in response.json()["content"]]


@pytest.mark.parametrize("model", WIRES)
async def test_a_tool_that_a_message_defines_is_called(opened: Opened, model: str) -> None:
    response = await opened.ask(model, HELLO, SAID, QUESTION, ADDED)
    assert kinds(response)[-1] == "tool_use"
    assert response.json()["content"][-1]["input"] == {"city": "Rome"}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", OTHERS)
async def test_a_call_of_a_removed_tool_does_not_reach_the_client(opened: Opened, model: str, streams: bool) -> None:
    response = await opened.ask(model, HELLO, SAID, QUESTION, REMOVED, tools=[WEATHER], stream=streams)
    assert "get_weather" in opened.received(model)
    assert "The tool `get_weather` is no longer available." in opened.received(model)
    assert "tool_use" not in response.text.replace("Tool `get_weather`", "")
    assert "REMOVED_TOOL_CALLED" in response.text and response.status_code == 200
    assert "this call was not run" in opened.received(model)
    assert '"stop_reason":"end_turn"' in response.text.replace(" ", "")


async def test_a_backend_of_the_same_api_removes_a_tool_itself(opened: Opened) -> None:
    messages = [HELLO, SAID, QUESTION, REMOVED, QUICK]
    assert kinds(await opened.ask("messages", *messages, tools=[WEATHER])) == ["text"]
    assert json.loads(opened.backends["messages"].requests[-1].body)["messages"] == messages


@pytest.mark.parametrize("model", OTHERS)
async def test_a_tool_that_comes_back_is_called(opened: Opened, model: str) -> None:
    back: Json = {"role": "system", "content": [{"type": "tool_addition", "tool": NAMED}]}
    response = await opened.ask(model, HELLO, SAID, HELLO, REMOVED, SAID, QUESTION, back, tools=[WEATHER])
    assert kinds(response)[-1] == "tool_use"


async def test_an_effort_and_a_text_of_one_turn_reach_another_api(opened: Opened) -> None:
    await opened.ask("chat", HELLO, REMINDER)
    assert "Look sharp." in opened.received("chat")
    await opened.ask("chat", HELLO, REMINDER, SAID, QUICK, QUESTION)
    body = json.loads(opened.backends["chat"].requests[-1].body)
    assert body["reasoning_effort"] == "low"
    assert [message["content"] for message in body["messages"]] == ["Hello", "Hello.", "What's the weather in Rome?"]


async def test_a_wrong_directive_names_its_place(opened: Opened) -> None:
    response = await opened.ask("chat", HELLO, REMOVED)
    assert response.status_code == 400
    assert "messages[1].content[0].tool.name" in response.json()["error"]["message"]


async def test_an_update_in_a_stored_history_holds(opened: Opened) -> None:
    """OpenAI: "for subsequent responses until another configuration update replaces it"."""
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    client = opened.gateway.client
    first = await client.post("/v1/responses", json={"model": "chat", "input": [HELLO, update]})
    fields = {"model": "chat", "previous_response_id": first.json()["id"], "reasoning": {"effort": "high"}}
    second = await client.post("/v1/responses", json={**fields, "input": "Hello again"})
    assert second.status_code == 200
    assert json.loads(opened.backends["chat"].requests[-1].body)["reasoning_effort"] == "low"
    later = update | {"reasoning": {"effort": "medium"}}
    await client.post("/v1/responses", json={**fields, "input": [{"role": "user", "content": "Hello again"}, later]})
    assert json.loads(opened.backends["chat"].requests[-1].body)["reasoning_effort"] == "medium"
    wrong = update | {"reasoning": {"effort": 1}}
    refused = await client.post("/v1/responses", json={**fields, "input": [wrong]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[0].reasoning.effort")
