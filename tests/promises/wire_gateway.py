"""Runs a gateway with faulty backends on one wire, with one model for each of them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from gateway.core.conversation import Json
from gateway.testing.faulty import FaultyBackend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.promises.wires import Wire

# Long ones where nothing is waited for: a busy machine must not look like a silent backend.
TIMEOUTS: Final[Mapping[str, Json]] = {"connect": 5, "first_byte": 5, "idle": 5, "total": 120}
# The total counts from before the connection, which a busy machine makes late.
SHORT: Final[Mapping[str, Json]] = {**TIMEOUTS, "first_byte": 1.2, "idle": 1.2, "total": 3}
LIMITS: Final[Mapping[str, Json]] = {"max_response_mb": 0.25, "max_event_mb": 0.05}


def wire_settings(wire: Wire, base_urls: Mapping[str, str], timeouts: Mapping[str, Json] = TIMEOUTS) -> dict[str, Json]:
    """settings.json with a backend and a model for each name."""
    entries: dict[str, Json] = {
        name: {**wire.entry, "base_url": base_url, "timeouts": dict(timeouts)} for name, base_url in base_urls.items()
    }
    return {
        "server": {"sse_ping_s": 60},
        "limits": dict(LIMITS),
        "backends": entries,
        "models": {name: {"backend": name} for name in base_urls},
    }


@asynccontextmanager
async def wire_gateway(
    wire: Wire, backends: Mapping[str, FaultyBackend], timeouts: Mapping[str, Json] = TIMEOUTS
) -> AsyncIterator[RunningGateway]:
    """A gateway in front of these backends."""
    base_urls = {name: backend.base_url for name, backend in backends.items()}
    async with running_gateway(wire_settings(wire, base_urls, timeouts)) as gateway:
        yield gateway


def frames(text: str) -> list[str]:
    """The data of every event of a stream."""
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


def text_of(data: list[str]) -> str:
    """The text in the chunks of a stream; error frames and `[DONE]` are none."""
    chunks = [json.loads(one) for one in data if one.startswith('{"id"')]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def finishes(data: list[str]) -> list[str]:
    """The finish reasons in the chunks of a stream."""
    chunks = [json.loads(one) for one in data if one.startswith('{"id"')]
    return [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
