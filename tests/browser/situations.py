"""Four situations for which people open the page, each as a request of a gateway."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, cast

import msgspec

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.traffic import settings

ROUNDS: Final = 149
CODEX: Final = {"user-agent": "codex_cli_rs/0.63.0 (Linux 6.8; x86_64) xterm"}
REFUSAL: Final = "Rate limit reached: your plan allows 3 requests a minute. Please try again in 20 s."
PIECE: Final = "The build reads each page once, and writes it once. "
PIECES: Final = 400


class Situation(msgspec.Struct, frozen=True):
    """A request that somebody looks at: of a gateway, by its id, and whether it is still being served."""

    gateway: RunningGateway
    request_id: str
    live: bool = False


def codex_request() -> dict[str, Json]:
    """Returns a request of Codex after an hour of work: 300 messages, and tools of 60 KB."""
    items: list[Json] = [
        {"type": "message", "role": "developer", "content": "You are an agent in a repository. " * 60},
        {"type": "message", "role": "user", "content": "Find out why the build of the docs fails, and mend it."},
    ]
    for number in range(ROUNDS):
        call_id = f"call_{number:03}"
        arguments = json.dumps({"command": ["make", f"docs/page-{number}"], "timeout_ms": 10_000})
        items += [
            {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": arguments},
            {"type": "function_call_output", "call_id": call_id, "output": f"page {number} is built\n" * 40},
        ]
    tools: list[Json] = [
        {
            "type": "function",
            "name": "shell" if not at else f"mcp__docs__tool_{at}",
            "description": "Runs one step of the build and returns what it has printed. " * 34,
            "strict": False,
            "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}},
        }
        for at in range(30)
    ]
    return {"model": "demo-agent", "instructions": "You are Codex.", "input": items, "tools": tools, "store": False}


def broken_history() -> list[Json]:
    """Returns a conversation with a result without its call, a call without its result, and arguments as an object."""
    weather: Json = {"name": "weather", "arguments": {"city": "Rome"}}
    return [
        {"role": "system", "content": "You tell the weather."},
        {"role": "user", "content": "How is the weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": weather}]},
        {"role": "tool", "tool_call_id": "call_9", "content": "18 degrees, rain"},
        {"role": "user", "content": "And in Oslo?"},
    ]


async def _chat(gateway: RunningGateway, model: str, messages: list[Json]) -> Situation:
    body: dict[str, Json] = {"model": model, "messages": messages}
    response = await gateway.client.post("/v1/chat/completions", json=body)
    return Situation(gateway, response.headers["x-request-id"])


@asynccontextmanager
async def codex() -> AsyncIterator[Situation]:
    """A request of Codex of which the older results are shortened."""
    async with running_gateway({**settings(), "max_tool_result_chars": 400}) as gateway:
        response = await gateway.client.post("/v1/responses", json=codex_request(), headers=CODEX, timeout=60)
        assert response.status_code == 200, response.text
        yield Situation(gateway, response.headers["x-request-id"])


async def _refuse(connection: Connection) -> None:
    error: Json = {"error": {"message": REFUSAL, "type": "requests", "code": "rate_limit_exceeded"}}
    await connection.send(answer("429 Too Many Requests", json.dumps(error).encode()))


@asynccontextmanager
async def failing() -> AsyncIterator[Situation]:
    """A backend that refuses a request."""
    async with faulty_backend(_refuse) as backend, _behind(backend.base_url) as gateway:
        yield await _chat(gateway, "large", [{"role": "user", "content": "Summarise the report of this week."}])


@asynccontextmanager
async def broken() -> AsyncIterator[Situation]:
    """A history that a client has broken, which is repaired and answered."""
    async with running_gateway(settings()) as gateway:
        yield await _chat(gateway, "demo-chat", broken_history())


async def _stream(connection: Connection) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    await connection.send(head)
    for number in range(PIECES):
        chunk: Json = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "large",
            "choices": [{"index": 0, "delta": {"content": PIECE}, "finish_reason": None}],
        }
        await connection.send(f"data: {json.dumps(chunk)}\n\n".encode())
        if number % 40 == 0:
            await asyncio.sleep(0.05)
    # The model goes on thinking for longer than anybody looks.
    await asyncio.sleep(120)


@asynccontextmanager
async def streaming() -> AsyncIterator[Situation]:
    """A long answer that has not ended, to a request of which something was changed."""
    async with faulty_backend(_stream) as backend, _behind(backend.base_url) as gateway:
        messages: list[Json] = [*broken_history(), {"role": "user", "content": "Explain the build, page by page."}]
        body: dict[str, Json] = {"model": "large", "messages": messages, "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body, timeout=60) as response:
            came, pieces = "", response.aiter_text()
            while came.count(PIECE) < PIECES:
                came += await anext(pieces)
            yield Situation(gateway, response.headers["x-request-id"], live=True)


def _behind(base_url: str) -> AbstractAsyncContextManager[RunningGateway]:
    entry: Json = {"adapter": "openai_chat", "base_url": base_url}
    base = settings()
    own: dict[str, Json] = {
        "backends": {**cast("dict[str, Json]", base["backends"]), "acme": entry},
        "models": {**cast("dict[str, Json]", base["models"]), "large": {"backend": "acme"}},
    }
    return running_gateway({**base, **own})


SITUATIONS: Final[dict[str, Callable[[], AbstractAsyncContextManager[Situation]]]] = {
    "codex": codex,
    "failing": failing,
    "broken": broken,
    "streaming": streaming,
}
