"""Provides a gateway with a scripted backend as a fixture."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, TypeAlias

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import FaultyBackend, Script, faulty_backend

Start: TypeAlias = "Callable[..., Awaitable[tuple[RunningGateway, FaultyBackend]]]"

# Long where nothing is waited for: a busy machine must not look like a silent backend.
PATIENT: Final[Mapping[str, Json]] = {"connect": 10, "first_byte": 10, "idle": 10, "total": 30}
# For a backend that says nothing at all, and for one that stops.
HASTY: Final[Mapping[str, Json]] = {**PATIENT, "first_byte": 0.3, "total": 0.5}
STALLED: Final[Mapping[str, Json]] = {**PATIENT, "idle": 0.6}


def settings_for(base_url: str, timeouts: Mapping[str, Json] = PATIENT, **server: Json) -> dict[str, Json]:
    """Settings with one model `m` on one backend of the made-up wire."""
    return {
        "server": {"api_keys_env": None, **server},
        "log": {"file": None},
        "backends": {
            "plain": {"adapter": "tests.server.plain:PlainAdapter", "base_url": base_url, "timeouts": dict(timeouts)}
        },
        "models": {"m": {"backend": "plain", "name": "inner"}, "n": {"backend": "plain"}},
    }


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`gateway, backend = await start(script, timeouts, **server settings)`."""
    async with AsyncExitStack() as stack:

        async def begin(
            script: Script, timeouts: Mapping[str, Json] = PATIENT, **server: Json
        ) -> tuple[RunningGateway, FaultyBackend]:
            backend = await stack.enter_async_context(faulty_backend(script))
            gateway = await stack.enter_async_context(
                running_gateway(settings_for(backend.base_url, timeouts, **server))
            )
            return gateway, backend

        yield begin
