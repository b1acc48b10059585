"""Gives calls of a real server time on a busy machine."""

import pytest

from gateway.server.state.valkey import connections


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no silent server."""
    monkeypatch.setattr(connections, "SILENT_S", 120)
