"""Provides a server of each kind, and a store on it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bench.load_test.store_servers import PROGRAMS, Server, server
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.store import ValkeyStore


@pytest_asyncio.fixture(params=PROGRAMS)
async def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with server(request.param, tmp_path_factory.mktemp("server")) as opened:
        yield opened


@pytest_asyncio.fixture
async def store(running: Server) -> AsyncIterator[ValkeyStore]:
    opened = ValkeyStore(read_address(running.url), lambda *_: None)
    yield opened
    await opened.aclose()
