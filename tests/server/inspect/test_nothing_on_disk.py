"""While somebody watches and looks, nothing of a conversation is in a file, also in none that is deleted but open."""

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import gateway_command
from tests.server.api.inspect.test_routes import DEMO

SAID: Final = "Weltraumbahnhof-Baikonur-51"
REQUEST_ID: Final = "req-on-no-disk"


def _processes(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in _processes(int(child)))]


def _open_files(pid: int) -> Iterator[bytes]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # A process goes on, and may close one meanwhile.
        with suppress(FileNotFoundError):
            if stat.S_ISREG(descriptor.stat().st_mode):
                yield descriptor.read_bytes()


def _files(folder: Path, pid: int) -> list[bytes]:
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [*written, *(content for one in _processes(pid) for content in _open_files(one))]


async def _files_with_the_log(folder: Path, pid: int) -> list[bytes]:
    """Waits until the log, which is among the files, tells of the request: its line may follow the answer."""
    async with asyncio.timeout(30):
        while True:
            files = _files(folder, pid)
            if any(REQUEST_ID.encode() in content for content in files):
                return files
            await asyncio.sleep(0.05)


async def _ended(client: httpx.AsyncClient) -> None:
    """Waits until the request is no longer served."""
    async with asyncio.timeout(30):
        while True:
            answer = await client.get(f"/inspect/api/requests/{REQUEST_ID}")
            if answer.status_code == 200 and not answer.json()["summary"]["live"]:
                return
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process has open is read from /proc")
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_nothing_of_a_conversation_is_in_a_file(tmp_path: Path, workers: str) -> None:
    logged: Json = {"level": "debug", "file": str(tmp_path / "gateway.log")}
    # Another worker learns only after a while that somebody watches.
    inspector: Json = {"contents": "always"}
    server: Json = {"api_keys_env": None}
    settings: dict[str, Json] = {**DEMO, "server": server, "log": logged, "inspector": inspector}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = ("serve", "--port", "0", "--workers", workers)
    async with gateway_command(tmp_path, settings, *command, TMPDIR=str(temporary), HOME=str(tmp_path)) as gateway:
        await gateway.wait_ready()
        async with (
            httpx.AsyncClient(base_url=gateway.base_url, timeout=60) as client,
            client.stream("GET", "/inspect/api/stream") as watched,
        ):
            assert watched.status_code == 200
            body = {"model": "demo-chat", "stream": True, "messages": [{"role": "user", "content": SAID}]}
            headers = {"x-request-id": REQUEST_ID}
            answer = await client.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
            await _ended(client)
            parameters = {"redact": "none"}
            shown = await client.get(f"/inspect/api/requests/{REQUEST_ID}/sent", params=parameters)
            found = await client.get("/inspect/api/export", params={"id": REQUEST_ID, **parameters})
            assert SAID in found.text and shown.status_code == 200, "its contents are in memory"
        files = await _files_with_the_log(tmp_path, gateway.process.pid)
    assert [content for content in files if SAID.encode() in content] == []
    assert os.listdir(temporary) == []
