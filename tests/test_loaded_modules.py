"""A gateway loads what its settings use, and the routes at which no model answers with the first request for one."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import gateway_command, python_process

Section = dict[str, Json]
# Starts a gateway for each of some settings, each in a process of its own, and prints the modules that it then has.
PROGRAM: Final = """
import asyncio, json, os, sys
from gateway.server.process.run import create_app
from gateway.settings import read_settings

async def serve(settings):
    app = create_app(read_settings(settings))
    app.gateway_state.share_limits()
    async with app.gateway_state.running():
        app.gateway_state.tick()
        await asyncio.sleep(0)
    print(json.dumps([*sys.modules]), flush=True)

for settings in json.loads(sys.argv[1]):
    if os.fork() == 0:
        asyncio.run(serve(settings))
        os._exit(0)
    assert os.wait()[1] == 0, settings
"""
ONE: Final[Section] = {
    "log": {"file": None},
    "server": {"api_keys_env": None},
    "inspector": {"enabled": "off"},
    "backends": {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1"}},
    "models": {"m": {"backend": "b", "context_length": 100_000}},
}


def backend(adapter: str, **options: Json) -> Section:
    """Settings with another backend."""
    return {"backends": {"b": {"adapter": adapter, "base_url": "http://127.0.0.1:1", **options}}}


# By what the settings say: the sections that say it, and what is loaded for it alone.
USES: Final[Mapping[str, tuple[Section, tuple[str, ...]]]] = {
    "summaries": ({"compress": {"enabled": True}}, ("gateway.server.summaries", "gateway.memory.summaries")),
    "pictures": (
        {"vision": {"model": "m"}, "models": {"m": {"backend": "b"}, "t": {"backend": "b", "images": "describe"}}},
        ("gateway.server.media.media",),
    ),
    "a store in a file": (
        {"state": {"store": "sqlite:FOLDER/state.db"}},
        ("gateway.server.state.sqlite", "sqlite3"),
    ),
    "the keeper": (
        {"keeper": {"enabled": True}},
        ("gateway.server.state.state_cache", "gateway.server.state.cached_states"),
    ),
    "spans": (
        {"tracing": {"endpoint": "http://127.0.0.1:1"}},
        ("gateway.server.telemetry.tracing.export", "opentelemetry", "google.protobuf"),
    ),
    "passed routes": (
        backend("openai_chat", routes={"POST /v1/embeddings": "/embeddings"}),
        ("gateway.server.api.passed",),
    ),
    "the inspector": (
        {"inspector": {"enabled": "loopback"}},
        ("gateway.server.inspect.inspector", "gateway.inspector.requests", "gateway.recording"),
    ),
    "a folder of recordings": (
        {"inspector": {"enabled": "off", "record": "FOLDER/recordings"}},
        ("gateway.server.inspect.folder", "gateway.recording.files"),
    ),
    "a demo backend": (
        {"backends": {"b": {"adapter": "openai_chat", "base_url": "demo:chat"}}},
        ("gateway.demo", "adapters.openai_chat.demo", "starlette.routing"),
    ),
    "messages": (backend("anthropic_messages"), ("adapters.anthropic_messages.backend",)),
    "gemini": (backend("gemini"), ("adapters.gemini.backend",)),
    "responses": (backend("openai_responses"), ("adapters.openai_responses.backend",)),
    "text": (backend("text", wire="llama_cpp"), ("adapters.text.backend",)),
    "warp": (backend("warp"), ("adapters.warp", "google.protobuf")),
    "protobuf": (backend("proto", preset="demo"), ("adapters.proto.backend", "google.protobuf")),
}
# What no gateway needs to serve clients; each is loaded when somebody asks for it.
WHEN_ASKED: Final = (
    *(
        "fastapi",
        "pydantic",
        "anyio",
        "sse_starlette",
        "httpx",
        "prometheus_client",
        "pypdf",
        "valkey",
        "h2",
        "cryptography",
    ),
    *(
        "cryptography",
        "wsproto",
        "gateway.server.api.websocket",
        "gateway.server.api.websocket_session",
        "gateway.server.http.websocket_protocol",
        "gateway.server.state.connection_answers",
        "gateway.server.api.routes",
        "gateway.server.api.inspect",
        "gateway.server.api.passed.endpoint",
        "gateway.server.doctor",
        "gateway.diagnostics",
    ),
    *("gateway.inspector.views", "gateway.recording.redact", "gateway.discovery", "gateway.local", "gateway.testing"),
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, frozenset[str]]:
    """The modules of a gateway with one backend (""), and of one for each use."""
    folder = tmp_path_factory.mktemp("loaded")
    every = [ONE, *[{**ONE, **section} for section, _ in USES.values()]]
    written = json.dumps(every).replace("FOLDER", str(folder))

    async def run() -> bytes:
        async with python_process(folder, "-c", PROGRAM, written) as process:
            output, _ = await process.communicate()
            assert process.returncode == 0
            return output

    lines = asyncio.run(run()).splitlines()
    return dict(zip(["", *USES], [frozenset(json.loads(line)) for line in lines], strict=True))


def of(package: str, modules: frozenset[str]) -> list[str]:
    """The modules of a package."""
    return sorted(name for name in modules if name == package or name.startswith(f"{package}."))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("use", USES)
def test_what_a_setting_needs_is_loaded_with_it_alone(use: str, loaded: dict[str, frozenset[str]]) -> None:
    for package in USES[use][1]:
        assert of(package, loaded[""]) == []
        assert of(package, loaded[use]) != []


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("package", WHEN_ASKED)
def test_what_somebody_asks_for_is_not_loaded_before(package: str, loaded: dict[str, frozenset[str]]) -> None:
    assert of(package, loaded[""]) == []


async def imported(folder: Path, *paths: str) -> frozenset[str]:
    """The modules that a gateway has imported that was asked for a chat and for these paths."""
    settings: Section = {**ONE, "server": {"port": 0, "api_keys_env": None}}
    async with gateway_command(folder, settings, "serve", PYTHONPROFILEIMPORTTIME="1") as command:
        await command.wait_ready()
        async with httpx.AsyncClient(base_url=command.base_url, timeout=30, trust_env=False) as client:
            asked = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
            assert (await client.post("/v1/chat/completions", json=asked)).status_code == 502
            for path in paths:
                assert (await client.get(path)).status_code == 200
        command.process.terminate()
        _, errors = await command.ended()
    return frozenset(re.findall(r"^import time: .+\| +(\S+)$", errors, re.M))


async def test_chats_and_probes_load_no_other_route(tmp_path: Path) -> None:
    found = await imported(tmp_path, "/healthz", "/readyz")
    assert {name: of(name, found) for name in WHEN_ASKED if of(name, found)} == {}
    assert of("gateway.server.api", found)


async def test_another_route_loads_them(tmp_path: Path) -> None:
    found = await imported(tmp_path, "/metrics")
    assert [name for name in ("fastapi", "prometheus_client") if not of(name, found)] == []
