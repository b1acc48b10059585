"""Without what Python lacks on Windows, one worker serves, and what is missing is told."""

import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.server.state import process_identity
from gateway.server.upstream.http import socket_poll
from gateway.testing.gateway import GatewayCommand, hello, python_process
from tests.paths import ROOT

REMOVED: Final = str(ROOT / "tests" / "server" / "process" / "without_unix.py")


@asynccontextmanager
async def command(folder: Path, *arguments: str) -> AsyncIterator[GatewayCommand]:
    async with python_process(folder, REMOVED, "gateway", *arguments) as process:
        yield GatewayCommand(process)


def settings(folder: Path) -> str:
    return json.dumps(
        {
            "server": {"api_keys_env": None},
            "log": {"file": "gateway.log", "max_mb": 1},
            "state": {"store": f"sqlite:{folder / 'state.sqlite'}"},
            "backends": {"a": {"adapter": "openai_chat", "base_url": "demo:chat"}},
            "models": {"m": {"backend": "a"}},
        }
    )


async def test_one_worker_serves_keeps_its_files_and_stops(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(settings(tmp_path))
    async with command(tmp_path, "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        async with httpx.AsyncClient(base_url=gateway.base_url, timeout=20, trust_env=False) as client:
            for _ in range(3):  # the second and third on the connection of the first
                response = await client.post("/v1/chat/completions", json=hello())
                assert response.status_code == 200, response.text
                assert response.json()["choices"][0]["message"]["content"]
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0, errors
    assert "this system has no SIGHUP: settings are read again only when their file changes" in errors
    assert "Traceback" not in errors
    assert "stopped" in (tmp_path / "gateway.log").read_text()


async def test_several_workers_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(settings(tmp_path))
    async with command(tmp_path, "serve", "--port", "0", "--workers", "2") as gateway:
        status, errors = await gateway.ended()
    assert status == 2
    assert errors == (
        "dragoman: settings.json: line 1: server.workers is 2, but this system can run 1 worker only: it has no fork\n"
    )


IMPORT: Final = """
import importlib
import pkgutil
from tests.server.process.without_unix import remove

remove()
for name in ("gateway", "adapters"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                print(module.name)
"""
# Those of several workers, one that needs an optional package, and the program that reads a PDF, refused on Windows.
NOT_IMPORTED: Final = {
    "gateway.server.process.runtime_directory",
    "gateway.server.process.workers",
    "gateway.local.llama_server",
    "gateway.server.media.pdf_text",
}


@pytest.mark.full
async def test_every_module_but_those_of_several_workers_can_be_imported(tmp_path: Path) -> None:
    async with python_process(tmp_path, "-c", IMPORT) as process:
        printed, errors = await process.communicate()
    assert set(printed.decode().split()) <= NOT_IMPORTED and process.returncode == 0, errors.decode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("doctor", "--offline"), r""),
        (("config", "check"), r""),
        (("connect", "codex", "--write"), r"dragoman: (nothing answers|what answers is .*) at .*\n"),
    ],
)
async def test_a_command_works(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(settings(tmp_path))
    async with python_process(tmp_path, REMOVED, "gateway", *arguments, environ={"HOME": str(tmp_path)}) as process:
        printed, errors = await process.communicate()
    assert process.returncode == 0 and re.fullmatch(told, errors.decode()), printed.decode()


async def test_what_is_printed_into_a_pipe_is_utf_8_whatever_the_code_page(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps([{"role": "user", "content": "你好 🙂"}], ensure_ascii=False))
    (tmp_path / "settings.json").write_text(settings(tmp_path))
    async with python_process(
        tmp_path, "-m", "gateway", "explain", "request.json", "--model", "m", environ={"PYTHONIOENCODING": "cp1252"}
    ) as process:
        printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert "你好 🙂" in printed.decode()


# Windows has O_BINARY, without which it writes a line end as two bytes. Here another flag stands for it, which the
# system does not ignore.
SAVE: Final = """
import fcntl
import os
from pathlib import Path

os.O_BINARY = os.O_NONBLOCK
from gateway.recording import files

print(fcntl.fcntl(files._created(Path("one")), fcntl.F_GETFL) & os.O_NONBLOCK)
"""


async def test_a_recording_is_written_byte_by_byte(tmp_path: Path) -> None:
    async with python_process(tmp_path, "-c", SAVE) as process:
        printed, errors = await process.communicate()
    assert int(printed) == os.O_NONBLOCK, errors.decode()


ROTATE: Final = """
import logging
from pathlib import Path
from tests.server.process.without_unix import remove

remove()
from gateway.server.log.file import SharedFile

file = SharedFile("lines.log", max_bytes=60, backups=2)
for number in range(9):
    file.emit(logging.makeLogRecord({"msg": f"line {number} of the log of the test"}))
file.close()
print(sorted(path.name for path in Path().iterdir()))
"""


async def test_the_log_file_rotates(tmp_path: Path) -> None:
    async with python_process(tmp_path, "-c", ROTATE) as process:
        printed, errors = await process.communicate()
    assert printed.decode().strip() == "['lines.log', 'lines.log.1', 'lines.log.2']", errors.decode()


def test_no_process_is_signalled_to_see_whether_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    monkeypatch.delattr(os, "kill")
    assert process_identity.is_alive("1:0")


def test_a_socket_is_asked_by_select_where_there_is_no_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(socket_poll, "POLLS", False)
    near, far = socket.socketpair()
    with near, far:
        received = socket_poll.poll_received(near.fileno())
        assert not received.poll(0)
        far.close()
        assert received.poll(0)
        assert not socket_poll.poll_closed(near.fileno()).poll(0)
