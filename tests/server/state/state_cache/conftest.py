"""Starts the gateways of the tests."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.server.backend import faulty_backend
from tests.server.state.state_cache.scene import Provider, Scene, Start, settings


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setenv("KEEPER_TEST_KEY", "sk-one-of-two")
    monkeypatch.setenv("KEEPER_TEST_OTHER_KEY", "sk-two-of-two")
    async with AsyncExitStack() as stack:

        async def begin(**more: Json) -> Scene:
            provider = Provider()
            backend = await stack.enter_async_context(faulty_backend(provider))
            gateway = await stack.enter_async_context(running_gateway(settings(backend.base_url, **more)))
            return Scene(provider, backend, gateway)

        yield begin


@pytest.fixture
async def scene(start: Start) -> Scene:
    scene: Scene = await start()
    return scene
