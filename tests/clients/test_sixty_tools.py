"""Real clients with a server of sixty tools, before a text model that gets one line of each: the tool that the model
needs runs on the client, and the client never sees the search."""

import json
import re
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import CLIENTS, PROGRAMS, LoggedGateway
from tests.clients.scratch import Scratch, claude_environ, printed_by
from tests.clients.tool_server import ANSWER, NAME
from tests.paths import ROOT

QUESTION: Final = "What is the weather forecast for Oslo?"
TOOL: Final = "weather_forecast"
MODEL: Final = "on-demand"
AT_ONCE: Final = "at-once"
SERVER: Final[dict[str, Any]] = {
    "command": sys.executable,
    "args": ["-m", "tests.clients.tool_server"],
    "env": {"PYTHONPATH": str(ROOT)},
}
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]


class Folder:
    """A gateway before a text model with tools on demand, and the folder with its log."""

    def __init__(self, folder: Path, address: str) -> None:
        self.gateway = LoggedGateway(folder, address)
        self._log = folder / "logs" / "gateway.log"

    def notices(self, rule: str) -> list[str]:
        """The lines of the log about a rule."""
        return re.findall(rf".* {rule}: .*", self._log.read_text(encoding="utf-8"))


@pytest_asyncio.fixture(loop_scope="function")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Folder]:
    path = tmp_path_factory.mktemp("gateway")
    settings = json.loads((ROOT / "settings.json").read_bytes())
    settings |= {
        "models": {MODEL: {"backend": "demo-text", "tool_loading": "on_demand"}, AT_ONCE: {"backend": "demo-text"}}
    }
    async with gateway_command(path, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
        await command.wait_ready()
        yield Folder(path, command.base_url.removeprefix("http://"))


def run(program: Path, folder: Folder, scratch: Scratch, commands: str, **environ: str) -> str:
    return printed_by(program, scratch, commands, {"GATEWAY": f"http://{folder.gateway.address}", **environ})


def check(folder: Folder, printed: str) -> None:
    """The model used the tool, of many that were held back."""
    assert ANSWER in printed
    loaded = folder.notices("TOOLS_LOADED")
    assert any(TOOL in line for line in loaded), loaded
    held = [
        int(found) for line in folder.notices("TOOLS_HELD_BACK") for found in re.findall(r"(\d+) of \d+ tools", line)
    ]
    assert held and max(held) >= 60
    assert "tool_search" not in printed


def claude(folder: Folder, tmp_path: Path, model: str, tool_search: str) -> str:
    """What Claude Code prints with the server of sixty tools, with its own search for tools switched on or off."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {NAME: SERVER}}))
    return run(
        PROGRAMS / "bin" / "claude",
        folder,
        Scratch(tmp_path),
        f"claude -p '{QUESTION}' --model {model} --mcp-config {config} --strict-mcp-config "
        f"--allowedTools mcp__{NAME}__{TOOL} </dev/null",
        ENABLE_TOOL_SEARCH=tool_search,
        **claude_environ(f"http://{folder.gateway.address}", model),
    )


def test_claude_code_uses_one_of_sixty(folder: Folder, tmp_path: Path) -> None:
    check(folder, claude(folder, tmp_path, MODEL, "false"))


def test_claude_code_searches_itself(folder: Folder, tmp_path: Path) -> None:
    # It defers the tools of its servers and loads them by references in the results of its own search.
    assert ANSWER in claude(folder, tmp_path, AT_ONCE, "true")
    assert "DeferredToolPlaceholder" in folder.gateway.written()
    # The search, the call of the tool that it found, and the answer.
    assert folder.gateway.answered("/v1/messages") == ["200"] * 3


def test_codex_uses_one_of_sixty(folder: Folder, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    connect = f"dragoman connect codex --write --settings {ROOT / 'settings.json'} --model demo-agent --url $GATEWAY"
    server = "\n".join(
        [
            f"[mcp_servers.{NAME}]",
            f"command = {json.dumps(SERVER['command'])}",
            f"args = {json.dumps(SERVER['args'])}",
            f"env = {{ PYTHONPATH = {json.dumps(str(ROOT))} }}",
        ]
    )
    printed = run(
        PROGRAMS / "node_modules" / ".bin" / "codex",
        folder,
        scratch,
        f"{connect} >/dev/null\nsed -i 's/^model = .*/model = \"{MODEL}\"/' ~/.codex/config.toml\n"
        f"cat >> ~/.codex/config.toml <<'END'\n{server}\nEND\n"
        f"codex exec --dangerously-bypass-approvals-and-sandbox '{QUESTION}' </dev/null",
        DRAGOMAN_KEY="k",
        RUST_LOG="error",
    )
    check(folder, printed)
