"""Tests `dragoman local` from its user's view."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gateway.local import INSTALL, MODEL, LocalModel
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
def test_it_answers_and_takes_the_model_with_it_when_it_ends(
    model_server: LocalModel, number: signal.Signals, status: int
) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
    command = [sys.executable, "-m", "gateway", "local", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as gateway:
        try:
            assert gateway.stdout is not None
            found = re.search(r"http://\S+", gateway.stdout.readline())
            assert found
            body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}
            answer = httpx.post(f"{found[0]}/chat/completions", json=body, timeout=60, trust_env=False)
            assert answer.json()["choices"][0]["message"]["content"]
            (server,) = children(gateway.pid)
            gateway.send_signal(number)
            assert gateway.wait(20) == status
            assert wait_gone(server)
        finally:
            gateway.kill()
