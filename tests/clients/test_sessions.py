"""The sessions of real agents, with a sub-agent each: Claude Code and Codex name what the gateway then shows as a tree.

Which headers and fields these are is decided by the installed programs alone.
"""

import json
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import CLIENTS, PROGRAMS, LoggedGateway
from tests.clients.scratch import Scratch, claude_environ, printed_by
from tests.paths import ROOT

_BIN: Final = PROGRAMS / "node_modules" / ".bin"
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]


@pytest_asyncio.fixture(loop_scope="function")
async def watched(tmp_path: Path) -> AsyncIterator[LoggedGateway]:
    """A gateway whose inspector keeps all contents."""
    folder = tmp_path / "gateway"
    folder.mkdir()
    settings = json.loads((ROOT / "settings.json").read_bytes())
    async with gateway_command(folder, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
        await command.wait_ready()
        yield LoggedGateway(folder, command.base_url.removeprefix("http://"))


def run(program: Path, gateway: LoggedGateway, scratch: Scratch, commands: str, **environ: str) -> str:
    return printed_by(program, scratch, commands, {"GATEWAY": f"http://{gateway.address}", **environ})


def looked_at(gateway: LoggedGateway, path: str, **query: str) -> Any:  # Any: JSON
    answer = httpx.get(f"http://{gateway.address}/inspect/api/{path}", params=query, trust_env=False, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def only_session(gateway: LoggedGateway) -> dict[str, Any]:
    """The session that all requests belong to, none of which has been changed for its ids."""
    found = looked_at(gateway, "sessions")
    assert found["grouped"] == found["matching"] == sum(one["figures"]["requests"] for one in found["sessions"])
    (session,) = found["sessions"]
    assert looked_at(gateway, "requests", filter="rule:SESSION_IGNORED")["matching"] == 0
    (main,) = session["agents"]
    (below,) = main["agents"]
    assert main["id"] == "" and below["id"] and below["agents"] == []
    counted = main["figures"]["requests"] + below["figures"]["requests"]
    assert counted == session["figures"]["requests"]
    assert looked_at(gateway, "requests", filter=f"session:{session['id']}")["matching"] == counted
    of_agent = looked_at(gateway, "requests", filter=f"session:{session['id']} agent:{below['id']}")
    assert of_agent["matching"] == below["figures"]["requests"]
    return dict(session)


async def test_claude_code_and_its_sub_agent(watched: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    run(
        PROGRAMS / "bin" / "claude",
        watched,
        scratch,
        "claude -p --dangerously-skip-permissions --model demo-messages "
        "'Use the Agent tool with the prompt \"Say hello.\"'",
        **claude_environ(f"http://{watched.address}", "demo-messages"),
    )
    session = only_session(watched)
    assert session["source"] == "claude_code"
    transcripts = [path.stem for path in scratch.home.glob(".claude/projects/*/*.jsonl")]
    assert session["id"] in transcripts, "it is the name of the client's own file"


async def test_codex_and_its_sub_agent(watched: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    settings = ROOT / "settings.json"
    printed = run(
        _BIN / "codex",
        watched,
        scratch,
        f"dragoman connect codex --write --settings {settings} --model demo-chat --url $GATEWAY >/dev/null\n"
        "codex exec --enable multi_agent_v2 --dangerously-bypass-approvals-and-sandbox "
        '\'First call collaboration__spawn_agent with "hello", then call collaboration__wait_agent with a timeout of '
        "10000 ms.'",
        DRAGOMAN_KEY="k",
        RUST_LOG="error",
    )
    session = only_session(watched)
    assert session["source"] == "codex"
    assert f"session id: {session['id']}" in printed
    assert session["figures"]["turns"] == 2, "each agent has one"
