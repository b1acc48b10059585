"""The way of a bug, as the pages say it: recorded in one copy of the project, made smaller, run again in another."""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path

import httpx
import pytest

from gateway.testing.gateway import gateway_command
from tests.paths import ROOT
from tests.test_readme import transcripts


def broken_history() -> dict[str, object]:
    """The request of the README's chapter about broken histories."""
    (command,) = (command for command, shown in transcripts() if "x-dragoman-changes" in shown)
    body = re.search(r"-d '(\{.*\})'", command)
    assert body is not None
    request: dict[str, object] = json.loads(body[1])
    return request


def copy_of_the_project(folder: Path) -> Path:
    """What a gateway needs of a clone: its packages and its settings."""
    for package in ("gateway", "adapters"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "settings.json", folder)
    return folder


async def printed(folder: Path, *words: str) -> str:
    """What a command prints that succeeds in this copy."""
    command = (sys.executable, "-m", "gateway", *words)
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode()


@pytest.mark.full
async def test_a_bug_of_one_copy_is_seen_in_another(tmp_path: Path) -> None:
    first, second = (copy_of_the_project(tmp_path / name) for name in ("first", "second"))
    bug, small = tmp_path / "bug.dragoman.jsonl", tmp_path / "bug.min.dragoman.jsonl"
    # With the settings of the project, as `make run` has them.
    async with gateway_command(first, None, "serve", "--port", "0") as command:
        await command.wait_ready()
        async with httpx.AsyncClient(base_url=command.base_url, timeout=20) as client:
            answer = await client.post("/v1/chat/completions", json=broken_history())
        assert answer.headers["x-dragoman-changes"] == "repair=1"
        said = await printed(first, "record", "--last", "--out", str(bug), "--url", command.base_url)
        assert said.startswith("1 request, ") and "Same notices and outcome: yes." in said
    assert f"bytes in {small}." in await printed(first, "minimise", str(bug), "--until", "rule:TOOL_ORPHAN")
    assert small.stat().st_size < bug.stat().st_size
    for path in (bug, small):
        said = await printed(second, "replay", str(path))
        assert said.startswith(answer.headers["x-request-id"]) and said.count("same.") == 4
