"""`dragoman lab` with the real clients (`make clients`): a few events each, and their verdicts."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from tests.clients.installed import CLIENTS
from tests.clients.lab_clients import PAGE, SDK, LabClient, path_with

EVENTS: Final = ("unknown_fields", "disconnected", "bad_request", "two_calls")
# Who asks again where the connection closes behind some text.
HEALS: Final = {
    "Claude Code": "survived",
    "Codex, WebSocket": "survived",
    "Codex, HTTP": "survived",
    "gemini-cli": "gave up",
    "Qwen Code": "survived",
    "opencode": "survived",
    "pi": "survived",
    "Continue": "survived",
    "anthropic": "gave up",
    # It asks for whole answers.
    "google-genai": "not met",
}


@pytest.mark.clients
@pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this")
@pytest.mark.parametrize("client", (*PAGE, *SDK), ids=lambda client: client.title)
def test_a_client_survives_what_is_odd_and_says_what_it_cannot(
    client: LabClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not client.program.exists():
        pytest.skip(f"NOT RUN: {client.title}, because its package could not be installed here")
    monkeypatch.setenv("PATH", os.pathsep.join((*path_with(client), os.environ["PATH"])))
    command = client.command
    if client.code:
        (tmp_path / "client.py").write_text(client.code)
        command = (*command, str(tmp_path / "client.py"))
    only = [word for name in EVENTS for word in ("--only", name)]
    arguments = ["lab", *only, "--format", "json", "--jobs", "2", *client.options, "--", *command]
    with pytest.raises(SystemExit) as left:
        main(arguments)
    printed = capsys.readouterr()
    assert left.value.code == 0, printed.err or printed.out
    assert {one["event"]: one["verdict"] for one in json.loads(printed.out)["outcomes"]} == {
        "unknown_fields": "survived",
        "disconnected": HEALS[client.title],
        "bad_request": "reported",
        "two_calls": "survived",
    }
