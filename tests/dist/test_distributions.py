"""What a release publishes has the right content, installs into an empty environment, and answers there."""

import hashlib
import json
import os
import tarfile
import tomllib

import httpx
import pytest

from gateway.testing.gateway import hello
from tests.dist.environment import DIST, Environment, distribution
from tests.paths import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CHAT = {"path": "/v1/chat/completions", "body": hello("demo-chat")}
MESSAGES = {"path": "/v1/messages", "body": {**hello("demo-agent"), "max_tokens": 100}}
GEMINI = {
    "path": "/v1beta/models/demo-grpc:generateContent",
    "body": {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
}

pytestmark = [
    pytest.mark.dist,
    pytest.mark.skipif("DIST" not in os.environ, reason="make dist builds the distributions"),
]


def test_the_checksums_are_those_of_the_distributions() -> None:
    lines = (DIST / "SHA256SUMS").read_text().splitlines()
    expected = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in map(distribution, ("whl", "tar.gz"))
    }
    assert {name: digest for digest, name in (line.split("  ") for line in lines)} == expected


def test_the_source_distribution_has_the_packages_and_no_tests() -> None:
    with tarfile.open(distribution("tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {member.uname for member in archive} == {""}
    modules = {
        str(path.relative_to(ROOT)) for package in ("gateway", "adapters") for path in (ROOT / package).rglob("*.py")
    }
    assert modules | {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"} <= names
    assert {name.partition("/")[0] for name in names} & {"tests", "bench", "docs", "deploy", "requirements"} == set()


def test_nothing_is_missing_after_the_installation(environment: Environment) -> None:
    assert "No broken requirements" in environment.pip("check")
    assert environment.run("--version") == f"dragoman {VERSION}\n"
    assert (environment.folder / "venv" / "share" / "man" / "man1" / "dragoman.1").is_file()


def test_the_bill_of_materials_lists_what_is_installed(environment: Environment) -> None:
    document = json.loads((DIST / "sbom.json").read_text(encoding="utf-8"))
    listed = {part["name"]: part["version"] for part in [*document["components"], document["metadata"]["component"]]}
    installed = environment.installed()
    installed.pop("pip")
    assert installed.pop("dragoman") == VERSION
    assert installed and {name: listed.get(name) for name in installed} == installed


async def test_the_base_installation_seals_and_opens_compactions(environment: Environment) -> None:
    message = {"type": "message", "role": "user", "content": "Hello"}
    async with (
        environment.gateway("demo", "--port", "0") as address,
        httpx.AsyncClient(base_url=address, timeout=20, trust_env=False) as client,
    ):
        body = {"model": "demo-chat", "input": [message]}
        made = await client.post("/v1/responses/compact", json=body)
        assert made.status_code == 200 and made.json()["output"][-1]["type"] == "compaction", made.text
        answer = await client.post("/v1/responses", json={**body, "input": [*made.json()["output"], message]})
        assert answer.status_code == 200, answer.text
    assert (environment.folder / ".local" / "state" / "dragoman" / "state.key").is_file()


async def test_an_empty_environment_serves_the_demo_to_clients_of_several_apis(environment: Environment) -> None:
    async with (
        environment.gateway("demo", "--port", "0") as address,
        httpx.AsyncClient(base_url=address, timeout=20, trust_env=False) as client,
    ):
        for request in (CHAT, MESSAGES, GEMINI):
            answer = await client.post(str(request["path"]), json=request["body"])
            assert answer.status_code == 200 and "scripted demo model" in answer.text, answer.text
