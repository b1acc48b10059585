"""Ids are shown as they are, also where words are replaced; those in arguments, and secrets, are not."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.redact.canaries import CANARIES, core_of
from tests.server.api.inspect.test_routes import settings

CALL: Final = "call_Zq81bTg5"
OWN: Final = "cust-4711-berlin"


async def ask(gateway: RunningGateway, model: str, call: str = CALL) -> str:
    arguments = json.dumps({"customer_id": OWN, "city": "Kassel"})
    messages: list[Json] = [
        {"role": "user", "content": "Weather in Kassel?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": {"name": "weather", "arguments": arguments}}],
        },
        {"role": "tool", "tool_call_id": call, "content": "rainy"},
    ]
    answer = await gateway.chat(model=model, messages=messages, metadata={"user_id": OWN})
    return answer.headers["x-request-id"]


async def view(gateway: RunningGateway, request_id: str, name: str) -> str:
    answer = await gateway.client.get(f"/inspect/api/requests/{request_id}/{name}")
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.parametrize("model", ["demo-chat", "demo-agent", "demo-messages", "demo-text"])
async def test_the_ids_of_calls_stay(model: str) -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, model)
        rows: Any = json.loads(await view(gateway, request_id, "messages"))["rows"]
        calls = [call["id"] for row in rows for cell in row["cells"].values() if cell for call in cell["calls"]]
        assert calls and set(calls) == {CALL}
        for name in ("messages", "received", "sent", "answer"):
            text = await view(gateway, request_id, name)
            assert name == "answer" or CALL in text, name
            assert "Kassel" not in text and OWN not in text and "cust-" not in text and "rainy" not in text, name


async def test_an_id_that_a_backend_has_chosen_stays() -> None:
    async with running_gateway(settings()) as gateway:
        for model in ("demo-chat", "demo-agent"):
            tools: Json = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
            messages: Json = [{"role": "user", "content": "Weather in Rome?"}]
            answer = await gateway.chat(model=model, messages=messages, tools=tools)
            (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
            assert call["id"] in await view(gateway, answer.headers["x-request-id"], "answer"), model


async def test_an_export_has_other_ids() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, "demo-chat")
        answer = await gateway.client.get("/inspect/api/export", params={"id": request_id})
        assert answer.status_code == 200 and CALL not in answer.text


async def test_a_secret_is_no_id() -> None:
    async with running_gateway(settings()) as gateway:
        for secret in (*CANARIES.values(), "call_" + CANARIES["openai"]):
            request_id = await ask(gateway, "demo-chat", secret)
            for name in ("messages", "received", "sent"):
                assert core_of(secret) not in await view(gateway, request_id, name)
