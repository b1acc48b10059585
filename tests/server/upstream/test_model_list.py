"""Tests `GET /v1/models` with the model entry `"*"`: the backend's own list, or the reason why there is none."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import openai
import pytest

from gateway.core.conversation import Json
from gateway.server.upstream.backends import Backends
from gateway.server.upstream.model_list import KEPT_S, MOST_BYTES, MOST_NAMES, ModelLists
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import Connection, FaultyBackend, Script, answer, faulty_backend

NATIVE: Final[dict[str, Json]] = {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter"}


ENTRIES: Final[dict[str, dict[str, Json]]] = {
    "openai": NATIVE,
    "anthropic_messages": {"adapter": "adapters.anthropic_messages.backend:AnthropicMessagesAdapter"},
    "gemini": {"adapter": "gemini"},
    "openai_responses": {"adapter": "openai_responses"},
}


def listing(*names: Json, key: str = "data", name: str = "id") -> bytes:
    return answer("200 OK", json.dumps({key: [{name: each} for each in names]}).encode())


def replying(reply: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(reply)

    return script


@asynccontextmanager
async def listing_gateway(
    script: Script, entry: Mapping[str, Json] = NATIVE, models: Mapping[str, Json] | None = None, **more: Json
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    async with faulty_backend(script) as backend:
        settings: dict[str, Json] = {
            "backends": {"b": {**entry, "base_url": backend.base_url}},
            "models": dict(models or {"*": {"backend": "b"}}),
            **more,
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


async def ids(gateway: RunningGateway) -> list[str]:
    response = await gateway.client.get("/v1/models")
    assert response.status_code == 200, response.text
    return [model["id"] for model in response.json()["data"]]


LISTS: Final[dict[str, tuple[str, bytes]]] = {
    "openai": ("/models", listing("x", "y")),
    "anthropic_messages": ("/v1/models?limit=1000", listing("x", "y")),
    "gemini": ("/models", listing("models/x", "models/y", key="models", name="name")),
    "openai_responses": ("/models", listing("x", "y")),
    "completions": ("/models", listing("x", "y")),
    "vllm": ("/models", listing("x", "y")),
    "llama_cpp": ("/v1/models", listing("x", "y")),
    "koboldcpp": ("/v1/models", listing("x", "y")),
    "tgi": ("/v1/models", listing("x", "y")),
    "ollama": ("/api/tags", listing("x", "y", key="models", name="name")),
    "ollama_chat": ("/api/tags", listing("x", "y", key="models", name="name")),
}


@pytest.mark.parametrize("wire", LISTS)
async def test_the_list_of_every_wire_that_has_one_is_relayed(wire: str) -> None:
    path, reply = LISTS[wire]
    entry = ENTRIES.get(wire, {"adapter": "adapters.text.backend:TextAdapter", "wire": wire})
    async with listing_gateway(replying(reply), entry) as (gateway, backend):
        assert await ids(gateway) == ["x", "y"]
        async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="unused") as client:
            assert [model.id async for model in client.models.list()] == ["x", "y"]
    assert [seen[0].split(b"\r\n")[0] for seen in backend.seen] == [f"GET {path} HTTP/1.1".encode()]


async def test_a_header_that_is_not_ascii_is_sent_as_with_every_other_request() -> None:
    entry: dict[str, Json] = {**NATIVE, "headers": {"x-team": "caf\u00e9"}}
    async with listing_gateway(replying(listing("x")), entry) as (gateway, backend):
        assert await ids(gateway) == ["x"]
        request = {"model": "x", "messages": [{"role": "user", "content": "Hello"}]}
        await gateway.client.post("/v1/chat/completions", json=request)
    assert [b"x-team: caf\xe9\r\n" in seen[0].lower() for seen in backend.seen] == [True, True]


async def test_the_request_for_a_list_has_the_headers_that_its_api_requires() -> None:
    entry: dict[str, Json] = {**ENTRIES["anthropic_messages"], "version": "2030-01-01"}
    async with listing_gateway(replying(listing("x")), entry) as (gateway, backend):
        assert await ids(gateway) == ["x"]
    assert b"\r\nanthropic-version: 2030-01-01\r\n" in backend.seen[0][0].lower()


async def test_a_wire_of_ones_own_says_where_its_list_is() -> None:
    wire: Json = {"base": "plain", "models": {"path": "/tags", "list": "tags", "name": "tag"}}
    entry: dict[str, Json] = {"adapter": "adapters.text.backend:TextAdapter", "wire": wire}
    async with listing_gateway(replying(listing("x", key="tags", name="tag")), entry) as (gateway, _):
        assert await ids(gateway) == ["x"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_list_that_is_compressed_although_identity_was_asked_for_is_read(coding: str) -> None:
    body = json.dumps({"data": [{"id": f"model-{n}"} for n in range(3000)]}).encode()
    packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
    reply = answer("200 OK", packed, b"content-encoding: " + coding.encode())
    async with listing_gateway(replying(reply)) as (gateway, _):
        assert len(await ids(gateway)) == 3000


async def test_the_credential_and_the_headers_of_the_settings_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-of-mine")
    entry: dict[str, Json] = {**NATIVE, "api_key_env": "MY_KEY", "headers": {"x-team": "blue"}}
    async with listing_gateway(replying(listing("x")), entry) as (gateway, backend):
        assert await ids(gateway) == ["x"]
    asked = backend.seen[0][0].lower()
    assert b"\r\nauthorization: bearer secret-of-mine\r\n" in asked and b"\r\nx-team: blue\r\n" in asked


async def test_the_models_of_the_settings_come_first_and_once() -> None:
    models: dict[str, Json] = {"mine": {"backend": "b"}, "y": {"backend": "b"}, "*": {"backend": "b"}}
    async with listing_gateway(replying(listing("x", "y")), models=models) as (gateway, _):
        assert await ids(gateway) == ["mine", "y", "x"]


async def test_a_key_sees_only_its_own() -> None:
    keys: Json = {"*": {"models": ["x"]}}
    async with listing_gateway(replying(listing("x", "y")), keys=keys) as (gateway, _):
        assert await ids(gateway) == ["x"]


async def test_a_name_that_stands_for_every_name_is_the_one_that_is_listed() -> None:
    models: dict[str, Json] = {"*": {"backend": "b", "name": "only"}}
    async with listing_gateway(replying(listing("x", "y")), models=models) as (gateway, backend):
        assert await ids(gateway) == ["only"]
    assert backend.seen == []


BOMB: Final = gzip.compress(b" " * (MOST_BYTES + 1), mtime=0)

REASONS: Final[dict[str, tuple[bytes, int, str, str]]] = {
    "unauthorized": (answer("401 Unauthorized", b"secret words"), 502, "upstream_auth_error", "status 401"),
    "a failure": (answer("500 Oops", b"secret words"), 502, "upstream_error", "status 500"),
    "a redirect": (answer("302 Found", b"", b"location: http://secret/"), 502, "upstream_error", "status 302"),
    "no list there": (answer("404 Not Found", b"secret words"), 502, "upstream_error", "status 404"),
    "a page": (answer("200 OK", b"<html>secret"), 502, "upstream_invalid_response", "cannot be read"),
    "another shape": (answer("200 OK", b'{"data": {"secret": 1}}'), 502, "upstream_invalid_response", "cannot be read"),
    "no names": (answer("200 OK", b'{"data": [{"secret": 1}]}'), 502, "upstream_invalid_response", "cannot be read"),
    "too deep": (answer("200 OK", b"[" * 100_000), 502, "upstream_invalid_response", "cannot be read"),
    "too large": (answer("200 OK", b" " * (MOST_BYTES + 1)), 502, "upstream_response_too_large", "too large"),
    "a bomb": (answer("200 OK", BOMB, b"content-encoding: gzip"), 502, "upstream_response_too_large", "too large"),
    "half a body": (
        answer("200 OK", gzip.compress(b'{"data": []}', mtime=0)[:-9], b"content-encoding: gzip"),
        502,
        "upstream_invalid_response",
        "cannot be read",
    ),
    "another coding": (answer("200 OK", b"?", b"content-encoding: br"), 502, "upstream_invalid_response", "cannot be"),
    "no http": (b"secret\r\n\r\n", 502, "upstream_connection_error", "request for the backend's list of models failed"),
}


@pytest.mark.parametrize("case", REASONS)
async def test_why_there_is_no_list_is_told(case: str, caplog: pytest.LogCaptureFixture) -> None:
    reply, status, code, said = REASONS[case]
    async with listing_gateway(replying(reply)) as (gateway, _):
        for _ in range(2):
            response = await gateway.client.get("/v1/models")
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (status, code)
            assert said in error["message"] and "secret" not in response.text
    told = [record.getMessage() for record in caplog.records if "are not listed" in record.getMessage()]
    assert len(told) == 1 and said in told[0]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            answer("401 Unauthorized", b'{"error": {"message": "no key secret-of-mine\\nhere"}}'),
            "no key [redacted] here",
        ),
        (answer("500 Oops", b"<html> it broke"), "<html> it broke"),
        (answer("500 Oops", b"x" * 100_000), "x" * 100),
        (answer("302 Found", b"there it is", b"location: http://secret/"), ""),
        (answer("503 Full", gzip.compress(b"full", mtime=0), b"content-encoding: gzip"), ""),
    ],
)
async def test_the_words_of_a_refused_list_are_in_the_log(
    reply: bytes, said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret-of-mine")
    entry: dict[str, Json] = {**NATIVE, "api_key_env": "MY_KEY"}
    async with listing_gateway(replying(reply), entry) as (gateway, _):
        assert (await gateway.client.get("/v1/models")).status_code == 502
    (told,) = [record.getMessage() for record in caplog.records if "are not listed" in record.getMessage()]
    words = told.partition(" said=")[2]
    assert words.startswith(f"'{said}") and len(words) < 400 and "secret" not in words
    assert bool(said) is (words != "''")


async def test_a_backend_that_says_nothing_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.upstream.model_list.LIMIT_S", 0.2)

    async def script(connection: Connection) -> None:
        await connection.gone()

    async with listing_gateway(script) as (gateway, _):
        response = await gateway.client.get("/v1/models")
        assert response.status_code in (502, 504) and "list of models" in response.json()["error"]["message"]


async def test_a_wire_without_a_list_says_so() -> None:
    entry: dict[str, Json] = {"adapter": "adapters.warp.backend:WarpAdapter"}
    async with listing_gateway(replying(b""), entry) as (gateway, backend):
        response = await gateway.client.get("/v1/models")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "models_not_listed")
        assert "'b'" in response.json()["error"]["message"]
    assert backend.seen == []


async def test_beside_models_of_the_settings_the_reason_stands_in_the_list() -> None:
    models: dict[str, Json] = {"mine": {"backend": "b"}, "*": {"backend": "b"}}
    async with listing_gateway(replying(answer("500 Oops")), models=models) as (gateway, _):
        assert await ids(gateway) == ["mine"]
        assert "status 500" in (await gateway.client.get("/v1/models")).json()["dragoman"]["missing"]


async def test_without_a_star_no_backend_is_asked_and_nothing_is_missing() -> None:
    async with listing_gateway(replying(listing("x")), models={"m": {"backend": "b"}}) as (gateway, backend):
        listed = (await gateway.client.get("/v1/models")).json()
        assert [model["id"] for model in listed["data"]] == ["m"] and "dragoman" not in listed
    assert backend.seen == []


async def test_many_ask_once_and_what_was_said_is_kept_for_a_while() -> None:
    now = 0.0
    async with faulty_backend(replying(listing("x"))) as backend:
        settings: Json = {
            "backends": {"b": {**NATIVE, "base_url": backend.base_url}},
            "models": {"*": {"backend": "b"}},
        }
        backends, lists = Backends(read_settings(settings)), ModelLists(lambda: now)
        found = await asyncio.gather(*(lists.names(backends) for _ in range(20)))
        assert {each.names for each in found} == {("x",)} and len(backend.seen) == 1
        now = KEPT_S - 1
        await lists.names(backends)
        assert len(backend.seen) == 1
        now = KEPT_S + 1
        await lists.names(backends)
        assert len(backend.seen) == 2


async def test_an_endless_list_and_odd_names_are_bounded() -> None:
    names: list[Json] = ["good", 7, "", "a\nb", "n" * 500, None, *(f"m{number}" for number in range(MOST_NAMES + 5))]
    async with listing_gateway(replying(listing(*names))) as (gateway, _):
        found = await ids(gateway)
    assert found[:2] == ["good", "m0"] and len(found) <= MOST_NAMES
