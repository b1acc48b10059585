"""A gateway before a scripted backend, as one fixture."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest

from gateway.types import Json
from tests.server.backend import FaultyBackend, Script, faulty_backend
from tests.server.running import Running, running_gateway

Start: TypeAlias = "Callable[..., Awaitable[tuple[Running, FaultyBackend]]]"

QUICK: Mapping[str, Json] = {"connect": 0.5, "first_byte": 0.5, "idle": 0.5, "total": 5}


def settings_for(base_url: str, **server: Json) -> dict[str, Json]:
    """Settings with one model `m` on one backend of the made-up wire."""
    return {
        "server": {"api_keys_env": None, **server},
        "log": {"file": None},
        "backends": {
            "plain": {"adapter": "tests.server.plain:PlainAdapter", "base_url": base_url, "timeouts": dict(QUICK)}
        },
        "models": {"m": {"backend": "plain", "name": "inner"}, "n": {"backend": "plain"}},
    }


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`gateway, backend = await start(script, **server settings)`."""
    async with AsyncExitStack() as stack:

        async def begin(script: Script, **server: Json) -> tuple[Running, FaultyBackend]:
            backend = await stack.enter_async_context(faulty_backend(script))
            gateway = await stack.enter_async_context(running_gateway(settings_for(backend.base_url, **server)))
            return gateway, backend

        yield begin
