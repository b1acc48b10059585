"""Tests access checks, requests that are rejected before a backend is called, and the headers of every response."""

import asyncio
import json
from itertools import product
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start
from tests.server.samples import missing

KEY_VARIABLE: Final = "TEST_GATEWAY_KEYS"


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hello", "finish"), END)


async def test_everything_but_health_needs_a_key(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "first-key, second-key")
    gateway, backend = await start(well, api_keys_env=KEY_VARIABLE)
    for path in ("/v1/models", "/openapi.json", "/docs", "/v1/events", "/v1/chat/completions", "/nowhere"):
        for authorization in ("", "Bearer wrong", "Basic first-key", "first-key", "Bearer first-key, second-key"):
            response = await gateway.client.get(path, headers={"authorization": authorization})
            assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
            assert response.headers["www-authenticate"] == "Bearer"
            assert "wrong" not in response.text
    for path in ("/healthz", "/readyz"):
        assert (await gateway.client.get(path)).status_code == 200
    assert (await gateway.chat()).status_code == 401
    assert not backend.seen
    for key in ("first-key", "second-key"):
        gateway.client.headers["authorization"] = f"Bearer {key}"
        assert (await gateway.chat()).status_code == 200


async def test_a_missing_key_is_told_before_the_body_is_read(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "key")
    gateway, _ = await start(well, api_keys_env=KEY_VARIABLE)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"
    assert (await exchange(gateway, head)).startswith(b"HTTP/1.1 401")


async def exchange(gateway: RunningGateway, request: bytes) -> bytes:
    """Send raw bytes and take the head of the answer and whatever comes with it."""
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(request)
    async with asyncio.timeout(8):
        received = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return received


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1", 200),
        ("127.0.0.13:8000", 200),
        ("127.255.255.254", 200),
        ("[::1]:8000", 200),
        ("[0:0:0:0:0:0:0:1]", 200),
        ("mine.example:80", 200),
        ("evil.example", 421),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.example:127.0.0.1", 421),
        ("127.0.0.1:evil.example", 421),
        ("[::1].evil.example", 421),
        ("::1:8000", 421),
        ("127.0.0.1@evil.example", 421),
        ("[::ffff:127.0.0.1]", 421),
        ("0.0.0.0", 421),
        ("[::]", 421),
        ("10.0.0.1", 421),
        ("2130706433", 421),
        ("", 421),
    ],
)
async def test_only_local_names_reach_a_loopback_gateway(start: Start, host: str, status: int) -> None:
    """A name can be pointed at this machine (DNS rebinding), the literal of an address cannot."""
    gateway, _ = await start(well, allowed_hosts=["mine.example"])
    response = await gateway.client.get("/healthz", headers={"host": host})
    assert response.status_code == status


@pytest.mark.parametrize("host", ["127.0.0.13", "127.0.0.1", "localhost"])
async def test_a_gateway_answers_at_the_address_that_it_is_bound_to(start: Start, host: str) -> None:
    gateway, _ = await start(well, host=host)
    assert (await gateway.chat()).status_code == 200


async def test_a_foreign_name_is_refused_for_every_method_and_path(start: Start) -> None:
    gateway, backend = await start(well)
    paths = ("/healthz", "/v1/models", "/v1/chat/completions", "/inspect", "/nowhere")
    for method, path in product(("GET", "HEAD", "POST", "OPTIONS", "DELETE"), paths):
        response = await gateway.client.request(method, path, headers={"host": "evil.example"})
        assert response.status_code == 421, (method, path)
    assert not backend.seen


async def test_foreign_web_pages_are_refused(start: Start) -> None:
    gateway, backend = await start(well)
    gateway.client.headers["sec-fetch-site"] = "cross-site"
    response = await gateway.chat()
    assert (response.status_code, response.json()["error"]["code"]) == (403, "cross_site_request")
    gateway.client.headers["sec-fetch-site"] = "same-origin"
    assert (await gateway.chat()).status_code == 200
    assert len(backend.seen) == 1


JSON: Final = "application/json"
DEEP: Final = b'{"model":"m","messages":[' + b"[" * 5000 + b"]" * 5000 + b"]}"

REFUSED: Final[dict[str, tuple[bytes, str, int, str]]] = {
    "a form": (b"{}", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    "plain text": (b"{}", "text/plain", 415, "unsupported_media_type"),
    "no type": (b"{}", "", 415, "unsupported_media_type"),
    "no JSON": (b"{", JSON, 400, "invalid_json"),
    "nothing": (b"", JSON, 400, "invalid_json"),
    "NaN": (b'{"model":"m","temperature":NaN}', JSON, 400, "invalid_json"),
    "bad UTF-8": (b'{"model":"\xff"}', JSON, 400, "invalid_json"),
    "deep nesting": (DEEP, JSON, 400, "invalid_json"),
    "an array": (b"[]", JSON, 400, "invalid_value"),
    "an unknown model": (json.dumps(hello("demo")).encode(), JSON, 404, "model_not_found"),
    "n": (json.dumps({**hello(), "n": 2}).encode(), JSON, 400, "unsupported_parameter"),
    "too much": (b" " * 1100, JSON, 413, "request_too_large"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_bad_requests_never_reach_a_backend(start: Start, name: str) -> None:
    content, media_type, status, code = REFUSED[name]
    body_mb = 1000 / 2**20 if name == "too much" else 32
    gateway, backend = await start(well, max_body_mb=body_mb)
    response = await gateway.client.post(
        "/v1/chat/completions", content=content, headers={"content-type": media_type} if media_type else {}
    )
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert set(response.json()["error"]) >= {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]
    assert not backend.seen


async def test_an_unknown_model_is_told_the_nearest_name(start: Start) -> None:
    gateway, _ = await start(well)
    message = (await gateway.chat(model="mm")).json()["error"]["message"]
    assert "Did you mean 'm'?" in message
    for far in ("zzz", "mistral"):
        told = (await gateway.chat(model=far)).json()["error"]["message"]
        assert "m, n" in told and "Did you mean" not in told


async def test_a_chunked_body_is_cut_off_while_it_is_read(start: Start) -> None:
    gateway, backend = await start(well, max_body_mb=0.1)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )

    async def send() -> None:
        while True:
            writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
            await writer.drain()

    sending = asyncio.create_task(send())
    async with asyncio.timeout(8):
        assert (await reader.read(12)) == b"HTTP/1.1 413"
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(5):
            await sending
    writer.close()
    assert not backend.seen


async def test_request_ids(start: Start) -> None:
    gateway, _ = await start(well)

    async def id_for(given: str) -> str:
        response = await gateway.client.get("/healthz", headers={"x-request-id": given})
        return response.headers["x-request-id"]

    assert await id_for("mine-1.2:3_4") == "mine-1.2:3_4"
    for odd in ("", "with space", "x" * 129, "<script>", 'a"b'):
        assert (await id_for(odd)).startswith("req_")
    assert await id_for("") != await id_for("")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/v1/chat/completions/", 404, "unknown_url"),
        ("GET", "/v1/models/none", 404, "model_not_found"),
    ],
)
async def test_unknown_paths_and_methods(start: Start, method: str, path: str, status: int, code: str) -> None:
    gateway, _ = await start(well)
    response = await gateway.client.request(method, path)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert (" GET /docs lists " in response.json()["error"]["message"]) == (code != "model_not_found")
    assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/v1/chat/completion", "Did you mean /v1/chat/completions?"),
        ("/v1/message", "Did you mean /v1/messages?"),
        ("/api/chats", "Did you mean /api/chat?"),
        ("/v1/embeddings", "The gateway itself has no embeddings, but passes them to a backend whose settings list"),
        ("/foo", "It serves /v1/chat/completions, /api/chat,"),
        ("/" + "zz/" * 400, "It serves"),
    ],
)
async def test_an_unknown_path_is_told_what_is_served(start: Start, path: str, advice: str) -> None:
    gateway, _ = await start(well)
    error = (await gateway.client.post(path, json={})).json()["error"]
    # Ollama's error is a text.
    message = error if path.startswith("/api/") else error["message"]
    assert advice in message and len(message) < 700


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("/v1beta/agents", "x-goog-api-key"),
        ("/v1beta/interactions/", "x-goog-api-key"),
        ("/v1beta/models/", "x-goog-api-key"),
        ("/v1/messages/unknown", "x-api-key"),
    ],
)
async def test_an_unknown_path_takes_the_key_where_its_neighbours_have_it(
    path: str, header: str, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("own:a-key-of-this-test\n")
    settings: dict[str, Json] = {
        "server": {"api_keys_file": str(tmp_path / "keys")},
        "backends": {"d": {"adapter": "openai_chat", "base_url": "demo:chat"}},
    }
    async with running_gateway(settings) as gateway:
        known = await gateway.client.get(path, headers={header: "a-key-of-this-test"})
        wrong = await gateway.client.get(path, headers={header: "another-key"})
    assert (known.status_code, wrong.status_code) == (404, 401)
    assert known.json()["error"].keys() == wrong.json()["error"].keys()


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/models", "GET"), ("/v1/chat/completions", "POST"), ("/v1/responses/resp_1", "DELETE, GET")],
)
async def test_a_refused_method_is_answered_with_those_of_the_path(start: Start, path: str, allowed: str) -> None:
    gateway, _ = await start(well)
    response = await gateway.client.request("PATCH", path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["/v1/v1/messages", "/v1/v1beta/models/m:generateContent", "/v1/api/chat"])
async def test_a_path_behind_a_base_url_with_a_version_is_told_so(start: Start, path: str) -> None:
    gateway, _ = await start(well)
    response = await gateway.client.post(path, json={})
    assert response.status_code == 404 and "Remove /v1 from the base URL of the client." in response.text


async def test_without_a_demo_backend_or_for_other_machines_there_is_nothing_to_show(start: Start) -> None:
    gateway, _ = await start(well)
    response = await gateway.client.get("/__demo/requests")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_url")
    settings: dict[str, Json] = {
        "backends": {"d": {"adapter": "openai_chat", "base_url": "demo:chat"}},
    }
    async with running_gateway(settings) as demo:
        assert (await demo.client.get("/__demo/requests")).json()["chat"]["requests"] == []
        gateway_state = demo.app.gateway_state
        elsewhere = msgspec.structs.replace(gateway_state.settings.server, host="0.0.0.0")
        gateway_state.settings = msgspec.structs.replace(gateway_state.settings, server=elsewhere)
        assert (await demo.client.get("/__demo/requests")).status_code == 404


async def test_models(start: Start) -> None:
    gateway, _ = await start(well)
    listed = (await gateway.client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["m", "n"]
    assert (await gateway.client.get("/v1/models/m")).json() == listed["data"][0]
    assert (await gateway.client.get("/models")).json() == listed


async def test_the_alias_without_version_answers_too(start: Start) -> None:
    gateway, _ = await start(well)
    assert (await gateway.client.post("/chat/completions", json=hello())).status_code == 200


async def test_the_document_describes_the_hot_route(start: Start) -> None:
    gateway, _ = await start(well)
    document = (await gateway.client.get("/openapi.json")).json()
    body = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"][JSON]["schema"]
    name = body["$ref"].rpartition("/")[2]
    assert {"model", "messages", "stream"} <= set(document["components"]["schemas"][name]["properties"])
    assert "/v1/models" in document["paths"]


async def test_a_bug_in_a_cold_route_is_an_error_object(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway, _ = await start(well)

    def bug() -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(gateway.app.gateway_state, "snapshot", bug)
    response = await gateway.client.get("/metrics")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert "secret" not in response.text


async def test_the_feed_shows_outcomes_without_contents(start: Start) -> None:
    gateway, _ = await start(well)
    tools: Json = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    seen: list[tuple[str, dict[str, Json]]] = []
    async with gateway.client.stream("GET", "/v1/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async with asyncio.timeout(8):
            while not gateway.app.gateway_state.event_bus.watchers:
                await gateway.client.get("/healthz")
        asking = asyncio.create_task(gateway.chat(tools=tools))
        kind = ""
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                seen.append((kind, json.loads(line[6:])))
                if kind == "request":
                    break
        await asking
    assert [kind for kind, _ in seen] == ["notice", "notice", "request"]
    assert [shown["rule"] for _, shown in seen[:2]] == ["TOOLS_NOT_OFFERED", "USAGE_ESTIMATED"]
    assert (seen[2][1]["status"], seen[2][1]["model"]) == (200, "m")
    assert "Hello" not in str(seen)


async def test_the_counters_tell_what_happened(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello", "finish" if b"good" in connection.body else "nonsense"), END)

    gateway, _ = await start(script)
    for word in ("good", "bad"):
        await gateway.chat(messages=[{"role": "user", "content": word}])
    await gateway.client.get("/nowhere/at/all")
    response = await gateway.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = (
        'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="200"} 1',
        'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="502"} 1',
        'gateway_requests_total{route="other",dialect="openai_chat",key="-",status="404"} 1',
        'gateway_upstream_errors_total{backend="plain",code="upstream_invalid_event",phase="head"} 1',
        "gateway_running_requests 0",
    )
    assert missing(response.text, *lines) == []
    assert "nowhere" not in response.text


async def test_an_error_says_what_was_changed_before_it() -> None:
    settings: dict[str, Json] = {
        "backends": {
            "b": {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "http://127.0.0.1:9/v1"}
        },
        "models": {"m": {"backend": "b"}},
    }
    orphan: list[Json] = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "lost"}]
    async with running_gateway(settings) as gateway:
        gateway.client.headers["x-dragoman-explain"] = "1"
        answer = await gateway.chat(messages=orphan)
        assert answer.status_code == 502
        assert answer.headers["x-dragoman-backend"] == "b"
        assert answer.headers["x-dragoman-changes"] == "repair=1"
        assert [told["rule"] for told in answer.json()["error"]["diagnostics"]] == ["TOOL_ORPHAN"]
        early = await gateway.chat(model="nobody")
        assert (early.status_code, "x-dragoman-backend" in early.headers) == (404, False)
