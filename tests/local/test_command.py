"""Tests `dragoman local` from its user's view."""

import asyncio
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from gateway.local import INSTALL, MODEL, LocalModel
from gateway.testing.gateway import gateway_command
from tests.local.test_process import child, wait_gone
from tests.paths import ROOT

# What the command starts is told by who started it: its children are looked up in /proc.
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


def test_without_the_packages_it_says_how_to_get_them() -> None:
    done = subprocess.run(
        child("import sys; sys.modules |= {'xllamacpp': None}; from gateway.cli import main; main(['local'])"),
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert all(line in done.stderr for line in INSTALL.splitlines())
    assert "Traceback" not in done.stderr


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


@needs_proc
@pytest.mark.local
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
async def test_it_answers_and_takes_the_model_with_it_when_it_ends(
    model_server: LocalModel, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}
    async with gateway_command(tmp_path, None, "local", "--port", "0", stderr=asyncio.subprocess.DEVNULL) as gateway:
        await gateway.wait_ready()
        async with httpx.AsyncClient(base_url=gateway.base_url, timeout=60, trust_env=False) as client:
            answer = await client.post("/v1/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"]
        (server,) = children(gateway.process.pid)
        gateway.process.send_signal(number)
        ended, _ = await gateway.ended()
    assert ended == status
    assert await asyncio.to_thread(wait_gone, server)
