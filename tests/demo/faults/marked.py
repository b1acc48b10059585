"""Requests for a fault of a demo backend, on each of the wires whose requests are JSON."""

from collections.abc import Callable, Mapping
from typing import Final

import httpx

from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from tests.adapters.anthropic_messages.demo.events import HEADERS

# The path of a request, and the fields that hold its text.
REQUESTS: Final[Mapping[str, tuple[str, Callable[[str], dict[str, Json]]]]] = {
    "chat": ("/chat/completions", lambda text: {"messages": [{"role": "user", "content": text}]}),
    "responses": ("/responses", lambda text: {"input": text}),
    "messages": ("/v1/messages", lambda text: {"max_tokens": 100, "messages": [{"role": "user", "content": text}]}),
}


async def ask(backend: DemoBackend, marker: str, *, stream: bool = True, patience: float = 8) -> httpx.Response:
    """The response of a running backend to a request for this fault. Raises httpx.ReadTimeout after `patience`."""
    path, fields = REQUESTS[backend.kind]
    body = {"model": "m", "stream": stream, **fields(f"count to ten [[demo:{marker}]]")}
    async with httpx.AsyncClient(timeout=httpx.Timeout(8, read=patience)) as client:
        return await client.post(f"{backend.base_url}{path}", json=body, headers=HEADERS)


async def send(kind: str, marker: str, *, stream: bool = True) -> httpx.Response:
    """The response of a backend of this kind, which runs for this request alone."""
    async with serve_demo(kind) as backend:
        return await ask(backend, marker, stream=stream)
