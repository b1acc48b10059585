"""The counts of tokens that clients of three APIs ask for: from the backend's own counter, else estimated and told."""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.server.upstream import token_counter
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import Connection, FaultyBackend, Script, answer, faulty_backend

QUESTION: Final = "How many words has this question, and who counts them?"
RULES: Final = "Be brief. " * 5
SCHEMA: Final[Json] = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL: Final[dict[str, Json]] = {"name": "read_file", "description": "Reads a file. " * 5}

# By the dialect of the client: the path of the count, that of the answer, the request, and what the answer counts.
_GEMINI: Final[dict[str, Json]] = {
    "systemInstruction": {"parts": [{"text": RULES}]},
    "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
    "tools": [{"functionDeclarations": [{**TOOL, "parametersJsonSchema": SCHEMA}]}],
}
_MESSAGES: Final[dict[str, Json]] = {
    "model": "m",
    "system": RULES,
    "messages": [{"role": "user", "content": QUESTION}],
    "tools": [{**TOOL, "input_schema": SCHEMA}],
}
_RESPONSES: Final[dict[str, Json]] = {
    "model": "m",
    "instructions": RULES,
    "input": QUESTION,
    "tools": [{"type": "function", **TOOL, "parameters": SCHEMA}],
}
CLIENTS: Final[dict[str, tuple[str, str, dict[str, Json], str]]] = {
    "messages": ("/v1/messages/count_tokens", "/v1/messages", _MESSAGES, "input_tokens"),
    "responses": ("/v1/responses/input_tokens", "/v1/responses", _RESPONSES, "input_tokens"),
    "gemini": ("/v1beta/models/m:countTokens", "/v1beta/models/m:generateContent", _GEMINI, "totalTokens"),
}
BACKENDS: Final[dict[str, dict[str, Json]]] = {
    "messages": {"adapter": "anthropic_messages", "base_url": "demo:messages"},
    "responses": {"adapter": "openai_responses", "base_url": "demo:responses"},
    "gemini": {"adapter": "gemini", "base_url": "demo:gemini"},
}


@asynccontextmanager
async def gateway_of(entry: Mapping[str, Json], **more: Json) -> AsyncIterator[RunningGateway]:
    settings: dict[str, Json] = {
        "backends": {"b": dict(entry)},
        "models": {"m": {"backend": "b", "name": "inner/model"}},
        **more,
    }
    async with running_gateway(settings) as gateway:
        yield gateway


@asynccontextmanager
async def scripted(script: Script, **entry: Json) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    async with faulty_backend(script) as backend, gateway_of({"base_url": backend.base_url, **entry}) as gateway:
        yield gateway, backend


def replying(*replies: bytes) -> Script:
    waiting = list(replies)

    async def script(connection: Connection) -> None:
        await connection.send(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    return script


def counted(response: httpx.Response, client: str) -> tuple[int, str | None]:
    """The number in the answer, and what its header says of it."""
    assert response.status_code == 200, response.text
    return response.json()[CLIENTS[client][3]], response.headers.get("x-dragoman-usage")


def prompt_tokens(client: str, document: Any) -> int:
    if client == "gemini":
        return int(document["usageMetadata"]["promptTokenCount"])
    return int(document["usage"]["input_tokens"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_the_backends_own_counter_answers_a_client_of_any_api(client: str, backend: str) -> None:
    path, answers, request, _ = CLIENTS[client]
    async with gateway_of(BACKENDS[backend]) as gateway:
        count = await gateway.client.post(path, json=request)
        limit = {"max_tokens": 64} if client == "messages" else {}
        answered = await gateway.client.post(answers, json={**request, **limit})
    assert counted(count, client) == (prompt_tokens(client, answered.json()), None)


ASKED: Final[dict[str, tuple[dict[str, Json], str, bytes, set[str]]]] = {
    "messages": (
        {"adapter": "anthropic_messages"},
        "/v1/messages/count_tokens",
        b'{"input_tokens": 14}',
        {"model", "messages", "system", "tools"},
    ),
    "responses": (
        {"adapter": "openai_responses"},
        "/responses/input_tokens",
        b'{"object": "response.input_tokens", "input_tokens": 14}',
        {"model", "input", "tools"},
    ),
    "gemini": (
        {"adapter": "gemini"},
        "/models/inner/model:countTokens",
        b'{"totalTokens": 14, "promptTokensDetails": []}',
        {"generateContentRequest"},
    ),
    "llama.cpp": (
        {"adapter": "openai_chat", "counter": "llama_cpp"},
        "/chat/completions/input_tokens",
        b'{"object": "response.input_tokens", "input_tokens": 14}',
        {"model", "messages", "tools"},
    ),
    "vLLM": (
        {"adapter": "openai_chat", "counter": "vllm"},
        "/../tokenize",
        b'{"count": 14, "max_model_len": 4096, "tokens": [1, 2]}',
        {"model", "messages", "tools"},
    ),
    "Kimi": (
        {"adapter": "openai_chat", "counter": "kimi"},
        "/tokenizers/estimate-token-count",
        b'{"code": 0, "data": {"total_tokens": 14}, "scode": "0x0", "status": true}',
        {"model", "messages", "tools"},
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_each_counter_gets_the_prepared_request_with_the_fields_that_it_takes(name: str) -> None:
    entry, path, reply, fields = ASKED[name]
    body = {**_MESSAGES, "max_tokens": 64, "temperature": 0.5, "stream": True, "stop_sequences": ["x"]}
    async with faulty_backend(replying(answer("200 OK", reply))) as backend:
        below: dict[str, Json] = {**entry, "base_url": f"{backend.base_url}/v1"}
        async with gateway_of(below) as gateway:
            response = await gateway.client.post(CLIENTS["messages"][0], json=body)
    assert counted(response, "messages") == (14, None)
    ((head, sent),) = backend.seen
    wanted = path.removeprefix("/..") if path.startswith("/../") else f"/v1{path}"
    assert head.split(b"\r\n")[0] == f"POST {wanted} HTTP/1.1".encode()
    document = json.loads(sent)
    assert document.keys() == fields
    if name == "gemini":
        document = document["generateContentRequest"]
        assert document["model"] == "models/inner/model"
    else:
        assert document["model"] == "inner/model"
    assert QUESTION in sent.decode() and RULES.strip() in sent.decode() and "read_file" in sent.decode()


FAILURES: Final[dict[str, bytes]] = {
    "refused": answer("400 Bad Request", b'{"error": {"message": "no"}}'),
    "broken": answer("500 Internal Server Error", b"no"),
    "limited": answer("429 Too Many Requests", b"no"),
    "redirected": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    "no JSON": answer("200 OK", b"fourteen"),
    "no number": answer("200 OK", b'{"input_tokens": "14"}'),
    "a negative number": answer("200 OK", b'{"input_tokens": -14}'),
    "no object": answer("200 OK", b"[14]"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_counter_that_fails_is_told_and_the_tokens_are_estimated(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, _, request, _ = CLIENTS["messages"]
    async with gateway_of({"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}) as plain:
        estimate = counted(await plain.client.post(path, json=request), "messages")
    async with scripted(replying(FAILURES[name]), adapter="anthropic_messages") as (gateway, backend):
        with caplog.at_level(logging.WARNING):
            found = [counted(await gateway.client.post(path, json=request), "messages") for _ in range(2)]
    assert found == [estimate] * 2 and estimate[1] == "estimated"
    assert len(backend.seen) == 2
    assert sum("COUNT_ESTIMATED" in record.getMessage() for record in caplog.records) == 2


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"])
async def test_a_backend_without_a_counter_is_not_asked_again_for_a_while(
    status: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, _, request, _ = CLIENTS["messages"]
    async with scripted(replying(answer(status, b"{}")), adapter="anthropic_messages") as (gateway, backend):
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert counted(await gateway.client.post(path, json=request), "messages")[1] == "estimated"
        assert len(backend.seen) == 1
        assert sum("COUNT_ESTIMATED" in record.getMessage() for record in caplog.records) == 1
        monkeypatch.setattr(gateway.app.gateway_state.token_counter, "_clock", lambda: 1e12)
        await gateway.client.post(path, json=request)
        assert len(backend.seen) == 2


async def test_a_model_that_a_backend_does_not_know_switches_off_the_counter_of_no_other() -> None:
    path, _, request, _ = CLIENTS["messages"]

    async def reply(connection: Connection) -> None:
        unknown = b'{"error": {"type": "not_found_error", "message": "model: wrong"}}'
        found = answer("200 OK", b'{"input_tokens": 14}')
        await connection.send(answer("404 Not Found", unknown) if b'"wrong"' in connection.body else found)

    async with faulty_backend(reply) as backend:
        own: dict[str, Json] = {
            "backends": {"b": {"adapter": "anthropic_messages", "base_url": backend.base_url}},
            "models": {"good": {"backend": "b"}, "wrong": {"backend": "b"}},
        }
        async with running_gateway(own) as gateway:
            found = [
                counted(await gateway.client.post(path, json={**request, "model": model}), "messages")[1]
                for model in ("good", "wrong", "good")
            ]
    assert found == [None, "estimated", None]


async def test_a_refused_key_is_told_beside_the_estimate(caplog: pytest.LogCaptureFixture) -> None:
    path, _, request, _ = CLIENTS["messages"]
    async with scripted(replying(answer("401 Unauthorized", b"{}")), adapter="anthropic_messages") as (gateway, _):
        with caplog.at_level(logging.WARNING):
            await gateway.client.post(path, json=request)
    told = [record.getMessage() for record in caplog.records]
    assert sum("BACKEND_CREDENTIAL" in line for line in told) == 1
    assert sum("COUNT_ESTIMATED" in line for line in told) == 1


async def test_a_slow_counter_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(connection: Connection) -> None:
        await connection.gone()

    monkeypatch.setattr(token_counter, "LIMIT_S", 0.05)
    path, _, request, _ = CLIENTS["gemini"]
    async with scripted(silent, adapter="gemini") as (gateway, backend):
        assert counted(await gateway.client.post(path, json=request), "gemini")[1] == "estimated"
        await backend.closed.wait()


async def test_a_large_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counter, "MOST_BYTES", 1000)
    path, _, request, _ = CLIENTS["responses"]
    reply = answer("200 OK", b" " * 1000 + b'{"input_tokens": 14}')
    async with scripted(replying(reply), adapter="openai_responses") as (gateway, _):
        assert counted(await gateway.client.post(path, json=request), "responses")[1] == "estimated"


@pytest.mark.parametrize(
    ("model", "entry"),
    [("m", {"adapter": "openai_chat"}), ("unknown", {"adapter": "anthropic_messages"})],
    ids=["no counter", "an unknown model"],
)
async def test_no_backend_is_asked_where_none_has_a_counter(model: str, entry: dict[str, Json]) -> None:
    path, _, request, _ = CLIENTS["messages"]
    async with scripted(replying(answer("200 OK", b'{"input_tokens": 14}')), **entry) as (gateway, backend):
        response = await gateway.client.post(path, json={**request, "model": model})
        assert counted(response, "messages")[1] == "estimated" and backend.seen == []


async def test_a_key_that_may_not_use_the_model_asks_no_backend(tmp_path: Path) -> None:
    path, _, request, _ = CLIENTS["messages"]
    (tmp_path / "keys").write_text("other:a-key-of-this-test\n")
    settings: dict[str, Json] = {
        "server": {"api_keys_file": str(tmp_path / "keys")},
        "keys": {"other": {"models": ["n"]}},
        "models": {"m": {"backend": "b"}, "n": {"backend": "b"}},
    }
    async with faulty_backend(replying(answer("200 OK", b'{"input_tokens": 14}'))) as backend:
        entry: dict[str, Json] = {"adapter": "anthropic_messages", "base_url": backend.base_url}
        async with gateway_of(entry, **settings) as gateway:
            key = {"x-api-key": "a-key-of-this-test"}
            refused = await gateway.client.post(path, json=request, headers=key)
            allowed = await gateway.client.post(path, json={**request, "model": "n"}, headers=key)
    assert (counted(refused, "messages")[1], counted(allowed, "messages")) == ("estimated", (14, None))
    assert len(backend.seen) == 1


async def test_a_request_that_cannot_be_sent_is_estimated() -> None:
    path, _, request, _ = CLIENTS["messages"]
    image: dict[str, Json] = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:9/a.png"}}
    alone: dict[str, Json] = {**request, "messages": [{"role": "user", "content": [image]}]}
    async with scripted(replying(answer("200 OK", b'{"totalTokens": 14}')), adapter="gemini") as (gateway, backend):
        assert counted(await gateway.client.post(path, json=alone), "messages")[1] == "estimated"
        assert backend.seen == []


def with_many(client: str) -> dict[str, Any]:
    """The request of a client with many functions like its one."""
    request: dict[str, Any] = CLIENTS[client][2]
    (tool,) = request["tools"]
    if client != "gemini":
        return {**request, "tools": [{**tool, "name": f"read_{at}"} for at in range(20)]}
    (declared,) = tool["functionDeclarations"]
    many = [{**declared, "name": f"read_{at}"} for at in range(20)]
    return {**request, "tools": [{"functionDeclarations": many}]}


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_estimate_has_no_function_that_waits_for_a_search(client: str) -> None:
    count, answers, _, _ = CLIENTS[client]
    request = with_many(client)
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": "demo:chat"}
    async with gateway_of(entry) as gateway:
        all_at_once, _ = counted(await gateway.client.post(count, json=request), client)
    async with gateway_of(entry, tool_loading="on_demand") as gateway:
        on_demand, said = counted(await gateway.client.post(count, json=request), client)
        limit = {"max_tokens": 64} if client == "messages" else {}
        explained = {"x-dragoman-explain": "1"}
        answered = await gateway.client.post(answers, json={**request, **limit}, headers=explained)
    (notice,) = [one for one in answered.json()["dragoman"]["diagnostics"] if one["rule"] == "TOOLS_HELD_BACK"]
    assert said == "estimated"
    assert notice["detail"].endswith(f": about {all_at_once - on_demand} tokens less")
    assert on_demand < all_at_once
