"""Starts one gateway for the clients of a module."""

import json
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import LoggedGateway
from tests.paths import ROOT


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoggedGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    settings = json.loads((ROOT / "settings.json").read_bytes())
    async with gateway_command(folder, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
        await command.wait_ready()
        yield LoggedGateway(folder, command.base_url.removeprefix("http://"))
