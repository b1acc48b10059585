"""Runs a model server in a child process that ends with this one."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from gateway.core.errors import SettingsError

START_LIMIT_S: Final = 120
STOP_LIMIT_S: Final = 5
CHILD: Final = (sys.executable, "-m", "gateway.local.llama_server")


class LocalModel:
    """A model server that is ready. `base_url` is its address, `pid` its process."""

    def __init__(self, base_url: str, pid: int) -> None:
        self.base_url = base_url
        self.pid = pid


@contextmanager
def run_model(weights: Path, command: tuple[str, ...] = CHILD, context: int | None = None) -> Iterator[LocalModel]:
    """Runs a model server until the block is left. `context` is its size in tokens; None: the server's own. Raises
    SettingsError when it does not become ready.

    The child's errors go to this process's stderr. The child is in a session of its own, so that Ctrl-C in a terminal
    reaches it only through this process, after the running responses have been drained.
    """
    with subprocess.Popen(
        [*command, str(weights), *([] if context is None else [str(context)])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield LocalModel(_wait_ready(process), process.pid)
        finally:
            _end(process)


def _wait_ready(process: "subprocess.Popen[str]") -> str:
    limit = threading.Timer(START_LIMIT_S, process.kill)
    limit.start()
    try:
        address = _address(process)
        while address and process.poll() is None:
            if _healthy(address):
                return address
            time.sleep(0.05)
    finally:
        limit.cancel()
    raise SettingsError(f"the local model server ended with status {process.wait()} before it was ready")


def _address(process: "subprocess.Popen[str]") -> str:
    """Returns the line that the child prints when it listens; empty when it ends first."""
    assert process.stdout is not None
    return next((line.strip() for line in process.stdout if line.startswith("http://")), "")


def _healthy(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
