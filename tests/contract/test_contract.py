"""A running gateway is held to its published document by schemathesis (`make contract`; `make test` skips it)."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.testing.gateway import gateway_command, hello
from tests.paths import ROOT

# Where the Makefile has put schemathesis, and for how long it shall draw requests. Not said: always the same ones.
TOOLS: Final = os.environ.get("CONTRACT_TOOLS", "")
SECONDS: Final = os.environ.get("CONTRACT_SECONDS", "")
KEY: Final = "contract-key"
BRIEF: Final = ("--max-examples", "15", "--generation-deterministic")


@pytest.mark.contract
@pytest.mark.skipif(not TOOLS, reason="make contract installs schemathesis and runs this")
async def test_every_route_keeps_to_the_published_document(tmp_path: Path) -> None:
    settings = json.loads((ROOT / "settings.json").read_text(encoding="utf-8")) | {
        "log": {"file": None, "level": "error"}
    }
    async with gateway_command(tmp_path, settings, "serve", "--port", "0", DRAGOMAN_API_KEYS=KEY) as gateway:
        await gateway.wait_ready()
        routes = await _documented_routes(gateway.base_url)
        traffic = asyncio.create_task(_ask_on(gateway.base_url))
        try:
            status, said = await _held_to_its_document(tmp_path, gateway.base_url)
        finally:
            traffic.cancel()
    assert status == 0, said
    # The document lists all routes, and none may be left out unseen.
    assert f"{routes} selected / {routes} total" in said, said


async def _held_to_its_document(folder: Path, base_url: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(Path(__file__).parent / "schemathesis.toml")),
        *("run", f"{base_url}/openapi.json", "--header", f"Authorization: Bearer {KEY}"),
        *(("--max-time", SECONDS) if SECONDS else BRIEF),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((TOOLS, str(ROOT))), "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def _documented_routes(base_url: str) -> int:
    async with httpx.AsyncClient(base_url=base_url, headers={"authorization": f"Bearer {KEY}"}, timeout=30) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    return sum(map(len, paths.values()))


async def _ask_on(base_url: str) -> None:
    """Who reads the feed waits until there is something to tell."""
    async with httpx.AsyncClient(base_url=base_url, headers={"authorization": f"Bearer {KEY}"}, timeout=60) as client:
        while True:
            await client.post("/v1/chat/completions", json=hello("demo-chat"))
            await asyncio.sleep(0.1)
