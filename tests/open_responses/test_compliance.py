"""Runs the compliance program of Open Responses against a gateway over every demo backend (`make open-responses`).

The program is no package that could be pinned by a registry. `OPEN_RESPONSES` names a folder with its sources at
`COMMIT` and with what it needs to run: its own packages, and bun, there or on the PATH. Other sources are an error.
"""

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import pytest

from gateway.core.conversation import Json
from gateway.demo.settings import DEMO_SETTINGS
from gateway.testing.gateway import running_gateway

FOLDER: Final = os.environ.get("OPEN_RESPONSES", "")
PROGRAM: Final = "bin/compliance-test.ts"
BUN: Final = shutil.which("bun", path=os.pathsep.join((f"{FOLDER}/node_modules/.bin", os.environ.get("PATH", ""))))
# Of the repository openresponses/openresponses: the specification of 2026-04-24, as it was in July 2026.
COMMIT: Final = "92c12d96d7b61d6d15e2214daa5e9c6000ab6e1c"
SOURCES: Final = (PROGRAM, "bun.lock", "package.json", "src/lib/*.ts", "src/generated/kubb/zod/*.ts")
DIGEST: Final = "a698d23e54d99ed92971c47cf9db2f6399cfd65e6070b1fe48625d9a3bb18264"
CASES: Final = 17
LIMIT_S: Final = 120

Repair: TypeAlias = Literal["strict", "repair"]
DEMO: Final = cast("dict[str, dict[str, Json]]", DEMO_SETTINGS)
# These take no pictures, which a 400 says.
WITHOUT_PICTURES: Final = frozenset({"demo-text", "demo-grpc"})
# The program asks for the failure of an output without its call. By default the gateway repairs such a history.
REPAIRED: Final = "websocket-failed-continuation-evicts-cache"

pytestmark = [
    pytest.mark.open_responses,
    pytest.mark.skipif(
        not FOLDER or BUN is None,
        reason="NOT RUN: OPEN_RESPONSES names no folder with the program of Open Responses, or bun is missing",
    ),
]


def _files() -> Iterator[Path]:
    for pattern in SOURCES:
        yield from sorted(Path(FOLDER).glob(pattern))


def _digest() -> str:
    """The digest of the names and the contents of the program's sources."""
    whole = hashlib.sha256()
    for path in _files():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(FOLDER).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def _failing(model: str, repair: Repair) -> set[str]:
    """The cases that a model cannot pass."""
    pictures = {"image-input"} if model in WITHOUT_PICTURES else set[str]()
    return pictures | ({REPAIRED} if repair == "repair" else set())


async def _results(base_url: str, model: str) -> list[dict[str, Any]]:
    assert BUN is not None
    process = await asyncio.create_subprocess_exec(
        *(BUN, "run", PROGRAM, "--base-url", f"{base_url}/v1", "--api-key", "unused", "--model", model, "--json"),
        cwd=FOLDER,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            out, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert out, said.decode()
    results: list[dict[str, Any]] = json.loads(out)["results"]
    return results


def test_the_program_is_the_one_that_is_pinned() -> None:
    assert _digest() == DIGEST, f"{FOLDER} has other sources than commit {COMMIT}"


@pytest.mark.parametrize("repair", ["strict", "repair"])
@pytest.mark.parametrize("model", DEMO["models"])
async def test_every_case_passes_over_every_backend_that_can_do_it(model: str, repair: Repair) -> None:
    async with running_gateway({**DEMO, "repair": repair}) as gateway:
        results = await _results(gateway.base_url, model)
    assert len({result["id"] for result in results}) == len(results) == CASES
    failed = {result["id"]: result["errors"] for result in results if result["status"] != "passed"}
    assert failed.keys() == _failing(model, repair), failed
