"""Packages of others add a backend and a dialect to an installed gateway: those of the documentation, as it shows them."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.testing.faulty import END, HEAD, Connection, chunk, faulty_backend
from gateway.testing.gateway import hello
from tests.dist.environment import Environment
from tests.paths import ROOT

EXAMPLES = ROOT / "tests" / "examples"
PACKAGES = ("dragoman-parrot", "json-lines-dialect")
ANSWER = (b'{"text": "Good "}', b'{"text": "morning."}', b'{"tokens": 5}')

pytestmark = [
    pytest.mark.dist,
    pytest.mark.skipif("DIST" not in os.environ, reason="make dist builds the distributions"),
]


def parrot_package(folder: Path) -> Path:
    """Writes the package of docs/add-a-backend.md, and returns its folder."""
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    (project,) = re.findall(r"```toml\n(.+?)```", page, re.S)
    (folder / "pyproject.toml").write_text(project)
    shutil.copy(EXAMPLES / "parrot.py", folder)
    return folder


@pytest.fixture(scope="module")
def extended(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The environment with both packages installed beside the gateway."""
    parrot = parrot_package(tmp_path_factory.mktemp("parrot"))
    lines = tmp_path_factory.mktemp("lines") / "package"
    shutil.copytree(EXAMPLES / "json_lines", lines, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))
    # --no-deps would hide that the gateway, which they need, is there.
    environment.pip("install", "--quiet", "--no-index", "--no-build-isolation", str(parrot), str(lines))
    yield environment
    environment.pip("uninstall", "--quiet", "--yes", *PACKAGES)


async def speak(connection: Connection) -> None:
    """Answers as the Parrot does."""
    await connection.send(HEAD, *(chunk(b"data: " + piece + b"\n\n") for piece in ANSWER), END)


def test_the_names_are_listed_with_their_packages(extended: Environment) -> None:
    adapters, dialects = extended.run("adapters"), extended.run("dialects")
    assert re.search(r"^parrot +dragoman-parrot 1\.0 +parrot:ParrotAdapter$", adapters, re.M)
    assert re.search(r"^json_lines +json-lines-dialect 1\.0 +json_lines_dialect:JsonLinesDialect$", dialects, re.M)
    assert re.search(r"^openai_chat +built in ", adapters, re.M)


async def test_a_request_in_the_new_dialect_reaches_the_new_backend(extended: Environment) -> None:
    async with faulty_backend(speak) as backend:
        settings = {
            "server": {"port": 0, "api_keys_env": None},
            "log": {"file": None},
            "backends": {"bird": {"adapter": "parrot", "base_url": backend.base_url, "voice": "loud"}},
            "models": {"bird": {"backend": "bird"}},
        }
        (extended.folder / "settings.json").write_text(json.dumps(settings))
        assert "0 errors, 0 warnings" in await asyncio.to_thread(extended.run, "config", "check")
        async with (
            extended.gateway("serve") as address,
            httpx.AsyncClient(base_url=address, timeout=20, trust_env=False) as client,
        ):
            chat = await client.post("/v1/chat/completions", json=hello("bird"))
            assert chat.json()["choices"][0]["message"]["content"] == "Good morning.", chat.text
            lines = {"model": "bird", "lines": [{"from": "human", "text": "Hello"}], "stream": False}
            answer = await client.post("/lines/chat", json=lines)
            assert answer.json()["text"] == "Good morning.", answer.text
        assert [b'"voice":"loud"' in body for _, body in backend.seen] == [True, True]


async def test_a_package_that_is_not_named_is_not_imported(extended: Environment) -> None:
    (module,) = (extended.folder / "venv").rglob("site-packages/parrot.py")
    code = module.read_text()
    module.write_text("raise RuntimeError('imported')")
    try:
        assert "parrot:ParrotAdapter" in await asyncio.to_thread(extended.run, "adapters")
        async with (
            extended.gateway("demo", "--port", "0") as address,
            httpx.AsyncClient(trust_env=False, timeout=30) as client,
        ):
            answer = await client.post(f"{address}/v1/chat/completions", json=hello("demo-chat"), timeout=20)
        assert answer.status_code == 200
    finally:
        module.write_text(code)
