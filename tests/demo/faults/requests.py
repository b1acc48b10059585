"""Requests to a demo backend with a defect, as the programs of its own wire send them."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import httpx

from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo

# Any: what the bodies of all wires have in common is that they are JSON.
Body: TypeAlias = dict[str, Any]

HEADERS: Final = {"anthropic-version": "2023-06-01"}
SCHEMA: Final[Json] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DESCRIPTION: Final = "The weather in a city"
FUNCTION: Final[Body] = {"name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA}
TOOLS: Final[list[Json]] = [{"type": "function", "function": FUNCTION}]
TOOLS_OF: Final[Mapping[str, Body]] = {
    "chat": {"tools": TOOLS},
    "messages": {"tools": [{"name": "get_weather", "description": DESCRIPTION, "input_schema": SCHEMA}]},
    "responses": {"tools": [{"type": "function", **FUNCTION}]},
    "gemini": {"tools": [{"functionDeclarations": [FUNCTION]}]},
}


def body_of(kind: str, text: str = "count to ten") -> Body:
    """The smallest body with this question."""
    match kind:
        case "messages":
            return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
        case "responses":
            return {"model": "m", "input": text}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        case "text":
            return {"prompt": f"User: {text}\n\nAssistant:"}
        case _:
            return {"model": "m", "messages": [{"role": "user", "content": text}]}


def path_of(kind: str, stream: bool) -> str:
    """The path below the base_url."""
    match kind:
        case "gemini":
            return f"/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
        case "messages":
            return "/v1/messages"
        case "responses":
            return "/responses"
        case "text":
            return "/completion"
        case _:
            return "/chat/completions"


async def post(
    backend: DemoBackend, body: Body, *, stream: bool = False, headers: Mapping[str, str] = {}
) -> httpx.Response:
    """The response of a running backend of a wire with JSON."""
    streamed = {"stream": True} if stream and backend.kind != "gemini" else {}
    url = backend.base_url + path_of(backend.kind, stream)
    async with httpx.AsyncClient(timeout=8, trust_env=False) as client:
        return await client.post(url, json={**streamed, **body}, headers={**HEADERS, **headers})


async def answer(kind: str, defect: str | None, body: Body, *, stream: bool = False) -> httpx.Response:
    """The response of a backend that runs for this request alone, with the defect or without any."""
    async with serve_demo(kind, defect=defect) as backend:
        return await post(backend, body, stream=stream)
