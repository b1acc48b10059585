"""Servers are known by what they answer, on real sockets; what is silent, slow or no HTTP costs a bounded time."""

import asyncio
import socket
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.discovery.identify import identify, identify_ports
from gateway.discovery.server_kinds import SERVER_KINDS
from gateway.testing.gateway import running_gateway
from tests.discovery.canned_server import canned_server, models, reply

OLLAMA: Final = {
    "/api/version": reply({"version": "0.12.3"}),
    "/v1/models": models("llama3.2", "qwen3", owner="library"),
}
# A busy machine may take so long; what answers takes none of it.
LONG_S: Final = 20.0
# What each server answers, by its own documentation and sources.
SERVERS: Final[dict[str, dict[str, bytes]]] = {
    "ollama": OLLAMA,
    "lm-studio": {
        "/api/v0/models": reply({"object": "list", "data": [{"id": "qwen3", "type": "llm", "state": "loaded"}]}),
        "/v1/models": models("qwen3", "text-embedding-nomic", owner="organization_owner"),
    },
    "llama-cpp": {
        "/props": reply({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1, "model_path": "m.gguf"}),
        "/v1/models": models("m.gguf", owner="llamacpp"),
    },
    "vllm": {"/version": reply({"version": "0.11.0"}), "/v1/models": models("meta/llama", owner="vllm")},
    "sglang": {
        "/get_model_info": reply({"model_path": "meta/llama", "is_generation": True}),
        "/v1/models": models("meta/llama", owner="sglang"),
    },
    # It answers as Ollama does, too.
    "koboldcpp": {"/api/extra/version": reply({"result": "KoboldCpp", "version": "1.100"}), **OLLAMA},
    "tgi": {"/info": reply({"model_id": "tiny", "version": "3.3.0", "router": "text-generation-router"})},
    "jan": {"/v1/models": models("jan-nano", owner="jan")},
    "openai-compatible": {"/v1/models": models("m"), "/version": reply({"version": "3.1"})},
}


def test_every_kind_has_a_case() -> None:
    assert set(SERVERS) | {"dragoman"} == {kind.name for kind in SERVER_KINDS}


@pytest.mark.parametrize("name", SERVERS)
async def test_a_server_is_known_by_its_answers(name: str) -> None:
    async with canned_server(SERVERS[name]) as url:
        server = await identify(url, connect_s=LONG_S, answer_s=LONG_S)
    assert server is not None and server.kind is not None
    assert server.kind.name == name and not server.locked


async def test_its_models_are_listed() -> None:
    async with canned_server(OLLAMA) as url:
        server = await identify(url, connect_s=LONG_S, answer_s=LONG_S)
    assert server is not None and server.models == ("llama3.2", "qwen3")


@pytest.mark.parametrize("keys", ["", "k" * 20])
async def test_another_dragoman_is_known_with_and_without_keys(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", keys)
    settings: dict[str, Json] = {
        "server": {"api_keys_env": "KEYS"},
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}},
        "models": {"m": {"backend": "b"}},
    }
    async with running_gateway(settings) as gateway:
        server = await identify(gateway.base_url, connect_s=LONG_S, answer_s=LONG_S)
    assert server is not None and server.kind is not None
    assert (server.kind.name, server.locked, server.models) == ("dragoman", bool(keys), () if keys else ("m",))


async def test_a_list_of_models_that_wants_a_key_is_told() -> None:
    refused = reply({"error": "no key"}, 401)
    async with canned_server({"/version": reply({"version": "0.11.0"}), "/v1/models": refused}) as url:
        server = await identify(url, connect_s=LONG_S, answer_s=LONG_S)
    assert server is not None and server.kind is not None
    assert (server.kind.name, server.locked) == ("vllm", True)


@pytest.mark.parametrize(
    ("server", "kind"), [({"server": "llama.cpp"}, "llama-cpp"), ({}, "openai-compatible")], ids=["header", "no header"]
)
async def test_a_server_that_answers_nothing_without_a_key_is_known_by_its_refusal(
    server: dict[str, str], kind: str
) -> None:
    refused = reply({"error": {"message": "Invalid API Key", "code": 401}}, 401, **server)
    async with canned_server({}, refused) as url:
        found = await identify(url, connect_s=LONG_S, answer_s=LONG_S)
    assert found is not None and found.kind is not None
    assert (found.kind.name, found.locked, found.models) == (kind, True, ())


@pytest.mark.parametrize(
    "default",
    [
        reply({"error": "a page"}),
        reply({"error": "no key"}, 401, server="llama.cpp"),
        reply({"error": {}}, 404),
        reply("no object"),
        reply([1, 2]),
        reply({"version": 3, "data": {}}),
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[[[[[[[[[",
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x00\xff" * 99,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nGZIP",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
        b"",
    ],
)
async def test_what_answers_anything_else_is_unknown(default: bytes) -> None:
    async with canned_server({}, default) as url:
        server = await identify(url, answer_s=0.3)
    assert server is not None and (server.kind, server.title) == (None, "an unknown server")


@pytest.mark.parametrize("size", [1, 1 << 18])
async def test_a_response_without_an_end_is_left(size: int) -> None:
    async with asyncio.timeout(20), canned_server({}, b"HTTP/1.1 200 OK\r\n\r\n[", b" " * size) as url:
        server = await identify(url, answer_s=0.3)
    assert server is not None and server.kind is None


async def test_a_port_that_nothing_listens_on_is_no_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert await identify(f"http://127.0.0.1:{port}") is None


async def test_a_port_that_takes_connections_and_says_nothing_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = await identify(f"http://127.0.0.1:{listener.getsockname()[1]}", answer_s=0.2)
    assert server is not None and server.kind is None


async def test_several_ports_are_asked_and_silent_ones_left_out() -> None:
    async with canned_server(OLLAMA) as one, canned_server(SERVERS["vllm"]) as other:
        ports = [int(url.rpartition(":")[2]) for url in (one, other)]
        found = await identify_ports([*ports, 9], LONG_S)
    assert [server.title for server in found] == ["Ollama", "vLLM"]
