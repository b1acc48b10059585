"""Tests the child process with a small replacement without a model: its readiness, and its end with the parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.errors import SettingsError
from gateway.local import run_model
from tests.paths import ROOT

WEIGHTS: Final = Path("no-such-model.gguf")

SERVER: Final = """
import http.server, os, sys, threading

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(200 if Handler.asked > 2 else 503)
        self.end_headers()
    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("loading", sys.argv[1])
print("http://127.0.0.1:%d" % server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
"""
# Whoever runs the tests in the background has made them deaf to SIGINT.
STARTER: Final = f"""
import signal, sys, time
from pathlib import Path
from gateway.local import run_model
signal.signal(signal.SIGINT, signal.default_int_handler)
with run_model(Path("model.gguf"), (sys.executable, "-c", {SERVER!r})) as model:
    print(model.pid, flush=True)
    time.sleep(60)
"""


def child(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


def gone(pid: int) -> bool:
    """Returns whether a process has ended, also before its status is collected."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def wait_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return gone(pid)


def test_it_is_ready_when_it_says_that_it_is_healthy() -> None:
    with run_model(WEIGHTS, child(SERVER)) as model:
        assert httpx.get(f"{model.base_url}/health", trust_env=False).status_code == 200
        assert not gone(model.pid)
    assert gone(model.pid)


def test_it_ends_when_the_block_is_left_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), run_model(WEIGHTS, child(SERVER)) as model:
        raise ZeroDivisionError
    assert gone(model.pid)


@pytest.mark.parametrize(
    "script", ["import sys; sys.exit(7)", "import sys; print('http://127.0.0.1:1', flush=True); sys.exit(7)"]
)
def test_a_child_that_ends_before_it_is_ready_is_an_error(script: str) -> None:
    with pytest.raises(SettingsError, match="status 7 before it was ready"), run_model(WEIGHTS, child(script)):
        pass


def test_a_child_that_never_becomes_ready_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.local.process.START_LIMIT_S", 0.3)
    with (
        pytest.raises(SettingsError, match="before it was ready"),
        run_model(WEIGHTS, child("import time; time.sleep(60)")),
    ):
        pass


def test_a_child_that_does_not_end_by_itself_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.local.process.STOP_LIMIT_S", 0.2)
    with run_model(WEIGHTS, child(SERVER.replace("sys.stdin.read()", "threading.Event().wait(60)"))) as model:
        pass
    assert gone(model.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_whoever_started_it(number: signal.Signals) -> None:
    with subprocess.Popen(
        child(STARTER), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert not gone(pid)
        starter.send_signal(number)
        starter.wait(30)
        assert wait_gone(pid)
