"""Provides the recording server with a gateway before it."""

from collections.abc import AsyncIterator

import pytest

from gateway.testing.gateway import RunningGateway
from tests.server.api.passed.recording_server import (
    CLIENT_KEY,
    KEY,
    KEY_ENV,
    KEYS_ENV,
    RecordingServer,
    passing_gateway,
    recording_server,
)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingServer]:
    monkeypatch.setenv(KEY_ENV, KEY)
    monkeypatch.setenv(KEYS_ENV, CLIENT_KEY)
    async with recording_server() as started:
        yield started


@pytest.fixture
async def gateway(server: RecordingServer) -> AsyncIterator[RunningGateway]:
    async with passing_gateway(server) as started:
        yield started
