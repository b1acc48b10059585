"""OpenAI's SDK speaks to the gateway over its WebSocket: a job of three turns with calls, through a backend of each
kind. The SDK's own types decide whether an event is one."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

import pytest
from openai import AsyncOpenAI
from openai.resources.responses.responses import AsyncResponsesConnection
from openai.types.responses import ResponsesServerEvent

from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import Dialogue, Model, PlannedCall, Reply
from gateway.demo.serve import Kind, serve_demo
from gateway.testing.gateway import RunningGateway, running_gateway

TOOLS: Final[list[Any]] = [
    {
        "type": "function",
        "name": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
        "strict": False,
    }
]
PLACES: Final = ("north", "south")
# A backend of each kind, by the wire of its demo backend.
WIRES: Final[Mapping[str, tuple[Kind, dict[str, Json]]]] = {
    "chat": ("chat", {"adapter": "openai_chat"}),
    "warp": ("agent", {"adapter": "warp", "encoding": "flatten", "rollback": "buffer"}),
    "text": ("text", {"adapter": "text", "wire": "llama_cpp"}),
    "mapped": ("grpc", {"adapter": "proto", "preset": "demo"}),
    "native": ("responses", {"adapter": "openai_responses"}),
    "messages": ("messages", {"adapter": "anthropic_messages"}),
    "gemini": ("gemini", {"adapter": "gemini"}),
}


def model(dialogue: Dialogue) -> Reply:
    """Looks at one place after the other, and then tells the question and what it saw."""
    seen = [result.text for results in dialogue.rounds for result in results]
    if len(seen) < len(PLACES):
        return Reply(calls=(PlannedCall(f"call_{len(seen)}", "look", {"at": PLACES[len(seen)]}),))
    return Reply(text=f"{dialogue.question} {' '.join(seen)}")


@asynccontextmanager
async def connection(
    wire: str, model: Model = model, defect: str | None = None, **more: Json
) -> AsyncIterator[tuple[RunningGateway, AsyncResponsesConnection]]:
    """A gateway before a demo backend of this kind, with a fault or without, and the SDK's connection to it."""
    kind, entry = WIRES[wire]
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(serve_demo(kind, model=model, defect=defect))
        settings: dict[str, Json] = {
            "backends": {"b": {**entry, "base_url": backend.base_url, **more}},
            "models": {"m": {"backend": "b"}},
        }
        gateway = await stack.enter_async_context(running_gateway(settings))
        client = await stack.enter_async_context(AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="unused"))
        yield gateway, await stack.enter_async_context(client.responses.connect())


async def answer(socket: AsyncResponsesConnection, **fields: Any) -> list[Any]:
    """The events of one answer, each as the SDK types it."""
    await socket.send(cast(Any, {"type": "response.create", "model": "m", "store": False, "tools": TOOLS, **fields}))
    found: list[ResponsesServerEvent] = []
    async for event in socket:
        found.append(event)
        # Of its own type, and with nothing that this type would not have.
        type(event).model_validate(json.loads(event.to_json()), strict=True)
        if event.type in ("response.completed", "response.failed", "error"):
            break
    return found


@pytest.mark.parametrize("wire", WIRES)
async def test_a_job_of_three_turns_sends_what_is_new_alone(wire: str) -> None:
    async with connection(wire) as (_, socket):
        told = await answer(socket, input="Which word?")
        for place in PLACES:
            response = told[-1].response
            [call] = [item for item in response.output if item.type == "function_call"]
            assert json.loads(call.arguments) == {"at": place}
            output = {"type": "function_call_output", "call_id": call.call_id, "output": f"saw {place}"}
            told = await answer(socket, input=[output], previous_response_id=response.id)
        assert told[-1].type == "response.completed"
        assert told[-1].response.output_text == "Which word? saw north saw south"


async def test_an_error_is_what_the_sdk_takes_for_one() -> None:
    async with connection("chat") as (_, socket):
        [error] = await answer(socket, input="Hello", model="unknown", stream_id="a")
        assert type(error).__name__ == "ResponseWsError"
        assert (error.status, error.stream_id, error.error.code) == (404, "a", "model_not_found")
        assert error.error.headers["x-request-id"].startswith("req_")
        await socket.close()
