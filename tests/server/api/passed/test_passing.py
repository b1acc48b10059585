"""What is passed on, to whom, and what ends it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.framing.json_field import JsonField
from gateway.server.api.passed import client_body
from gateway.server.api.passed.client_body import BEGINNING
from gateway.server.http.asgi_writer import through_asgi
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.framing.test_body_fields import BOUNDARY, form, part
from tests.server.api.passed.recording_server import (
    AUDIO,
    CLIENT_KEY,
    KEY,
    RecordingServer,
    passing_gateway,
    recording_server,
    respond,
    settings_for,
)
from tests.server.upstream.test_credentials import issuer_running
from tests.test_asgi import uvicorn_running

FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
MIB = 2**20
SPEECH = "/v1/audio/speech"
TEXT = "/v1/audio/transcriptions"


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for one in parts:
        yield one


def code(answer: httpx.Response) -> str:
    found: str = answer.json()["error"]["code"]
    return found


# --- the choice of the backend


async def test_a_model_of_another_backend_is_named(gateway: RunningGateway, server: RecordingServer) -> None:
    answer = await gateway.client.post("/v1/embeddings", json={"model": "m", "input": "x"})
    assert (answer.status_code, code(answer)) == (400, "unsupported_operation")
    message = answer.json()["error"]["message"]
    assert "'m'" in message and "'plain'" in message and "audio" in message
    assert not server.seen


async def test_a_key_uses_its_models_only(server: RecordingServer) -> None:
    async with passing_gateway(server, keys={"env-1": {"models": ["big"]}}) as gateway:
        refused = await gateway.client.post("/v1/embeddings", json={"input": "x", "model": "embed"})
        assert (refused.status_code, code(refused)) == (403, "model_not_allowed")
        unnamed = await gateway.client.post("/v1/moderations", json={"input": "x"})
        assert (unnamed.status_code, code(unnamed)) == (403, "model_not_allowed")
        in_a_form = form(part("file", b"x"), part("model", b"embed"))
        refused = await gateway.client.post(TEXT, content=in_a_form, headers=FORM)
        assert (refused.status_code, code(refused)) == (403, "model_not_allowed")
        assert not server.seen
        assert (await gateway.client.post("/v1/embeddings", json={"model": "big"})).status_code == 200


async def test_without_a_model_the_setting_decides(gateway: RunningGateway, server: RecordingServer) -> None:
    assert (await gateway.client.get("/v1/audio/voices")).json() == {"voices": ["alloy"]}
    assert (await gateway.client.post("/v1/moderations", content=b"raw")).status_code == 200
    assert [seen.line for seen in server.seen] == ["GET /v1/audio/voices HTTP/1.1", "POST /v1/moderations HTTP/1.1"]
    refused = await gateway.client.post("/v1/embeddings", json={"input": "x"})
    assert (refused.status_code, code(refused)) == (400, "missing_required_parameter")


async def test_the_path_at_the_backend_is_that_of_the_settings(
    gateway: RunningGateway, server: RecordingServer
) -> None:
    await gateway.client.post("/v1/rerank", json={"model": "big", "documents": []})
    assert server.seen[0].line == "POST /v2/rerank?version=1 HTTP/1.1"


async def test_only_what_the_answer_needs_is_passed_of_the_head(
    gateway: RunningGateway, server: RecordingServer
) -> None:
    sent = {
        "accept": "application/json",
        "cookie": "c=1",
        "x-api-key": CLIENT_KEY,
        "openai-organization": "org",
        "x-forwarded-for": "10.0.0.1",
        "te": "trailers",
        "connection": "keep-alive, x-secret",
        "x-secret": "1",
        "proxy-authorization": "Basic eA==",
    }
    await gateway.client.post("/v1/embeddings", json={"model": "big"}, headers=sent)
    assert sorted(server.seen[0].headers) == sorted(
        ["host", "user-agent", "accept-encoding", "content-type", "accept", "authorization", "content-length"]
    )
    assert CLIENT_KEY not in repr(server.seen)


async def test_only_what_the_body_needs_is_passed_of_the_answers_head(
    gateway: RunningGateway, server: RecordingServer
) -> None:
    server.answer = lambda _: respond(
        b"<script>", "text/html", "201 Created", "set-cookie: a=b", "access-control-allow-origin: *", "location: /x"
    )
    answer = await gateway.client.post("/v1/embeddings", json={"model": "big"})
    assert (answer.status_code, answer.content) == (201, b"<script>")
    assert not {"set-cookie", "access-control-allow-origin", "location"} & set(answer.headers)
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-dragoman-backend"] == "audio"


@pytest.mark.parametrize("length", [b"", b"content-length: 5\r\n"])
async def test_an_answer_without_a_body(gateway: RunningGateway, server: RecordingServer, length: bytes) -> None:
    """It has no length either (RFC 9110, section 8.6): a reader could wait for what never comes."""
    server.answer = lambda _: b"HTTP/1.1 204 No Content\r\n%b\r\n" % length
    answer = await gateway.client.post("/v1/embeddings", json={"model": "big"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-length" not in answer.headers and "content-type" not in answer.headers


# --- bodies


async def test_a_small_body_takes_an_open_connection(gateway: RunningGateway, server: RecordingServer) -> None:
    for _ in range(3):
        await gateway.client.post("/v1/embeddings", json={"model": "embed", "input": "x" * 50_000})
    assert (len(server.seen), server.opened) == (3, 1)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_form_arrives_to_the_byte(
    gateway: RunningGateway, server: RecordingServer, chunked: bool
) -> None:
    body = form(part("model", b"embed"), part("file", bytes(range(256)) * 40_000, '; filename="a.wav"'))
    parts = pieces(*(body[at : at + 100_000] for at in range(0, len(body), 100_000))) if chunked else body
    answer = await gateway.client.post(TEXT, content=parts, headers=FORM)
    assert answer.json() == {"text": "Hello"}
    assert server.seen[0].body == body.replace(b"embed", b"inner", 1)
    assert server.seen[0].framing == ("chunks" if chunked else "length")


async def test_a_model_behind_its_file_is_found(gateway: RunningGateway, server: RecordingServer) -> None:
    body = form(part("file", b"x" * (BEGINNING - MIB)), part("model", b"embed"), part("n", b"y" * 2 * MIB))
    assert (await gateway.client.post(TEXT, content=body, headers=FORM)).status_code == 200
    assert server.seen[0].body == body.replace(b"embed", b"inner")


async def test_a_model_that_comes_too_late_is_refused(gateway: RunningGateway, server: RecordingServer) -> None:
    body = form(part("file", b"x" * (BEGINNING + MIB)), part("model", b"embed"))
    answer = await gateway.client.post(TEXT, content=body, headers=FORM)
    assert (answer.status_code, code(answer)) == (400, "invalid_value")
    assert "8 MiB" in answer.json()["error"]["message"]
    assert not server.seen


async def test_the_body_is_sent_on_before_it_is_complete(gateway: RunningGateway, server: RecordingServer) -> None:
    """The client sends the rest only when the backend has the beginning."""
    arrived = asyncio.Event()

    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readuntil(b"beginning")
        arrived.set()
        await reader.readuntil(b"--XbX--\r\n")
        writer.write(respond(b"{}"))
        await writer.drain()
        return True

    async def parts() -> AsyncIterator[bytes]:
        yield form(part("model", b"embed"), end=b"") + b"--XbX\r\n" + part("file", b"beginning" + b"." * 200)
        async with asyncio.timeout(10):
            await arrived.wait()
        yield b"rest\r\n--XbX--\r\n"

    server.early = early
    assert (await gateway.client.post(TEXT, content=parts(), headers=FORM)).status_code == 200


async def test_the_answer_is_sent_on_before_it_is_complete(gateway: RunningGateway, server: RecordingServer) -> None:
    """The backend sends the rest only when the client has the beginning."""
    read = asyncio.Event()

    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 8\r\n\r\nsoon")
        async with asyncio.timeout(10):
            await read.wait()
        writer.write(b"late")
        await writer.drain()
        return True

    server.early = early
    async with gateway.client.stream("POST", SPEECH, json={"model": "big"}) as answer:
        found = b""
        async for piece in answer.aiter_raw():
            found += piece
            read.set()
    assert found == b"soonlate"


async def test_other_requests_run_while_a_body_is_read(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    class Counted(JsonField):
        def feed(self, data: bytes) -> None:
            sizes.append(len(data))
            super().feed(data)

    monkeypatch.setattr(client_body, "JsonField", Counted)
    body = b'{"x": [' + b"[" * 400 + b"]" * 400 + b", 1" * MIB + b'], "model": "big"}'
    answer = await gateway.client.post("/v1/embeddings", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert max(sizes) <= client_body.SLICE < 32 * 1024
    assert sum(sizes) == len(body)


async def test_a_body_with_a_second_model_never_arrives_whole(gateway: RunningGateway, server: RecordingServer) -> None:
    body = b'{"model": "embed", "x": "' + b"x" * MIB + b'", "model": "big"}'
    answer = await gateway.client.post("/v1/embeddings", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, code(answer)) == (400, "invalid_value")
    async with asyncio.timeout(10):
        while not server.seen:  # noqa: ASYNC110 (the server tells of no event)
            await asyncio.sleep(0.01)
    assert not server.seen[0].complete


async def test_a_body_that_grows_too_large_never_arrives_whole(server: RecordingServer) -> None:
    async with passing_gateway(server, server={"api_keys_env": "TEST_PASSED_KEYS", "max_body_mb": 1}) as gateway:
        body = form(part("model", b"embed"), part("file", b"x" * 3 * MIB))
        parts = pieces(*(body[at : at + 100_000] for at in range(0, len(body), 100_000)))
        answer = await gateway.client.post(TEXT, content=parts, headers=FORM)
        assert (answer.status_code, code(answer)) == (413, "request_too_large")
        declared = await gateway.client.post(TEXT, content=body, headers=FORM)
        assert (declared.status_code, code(declared)) == (413, "request_too_large")
    assert not any(seen.complete for seen in server.seen)


# --- failures


async def test_a_redirect_is_not_followed(gateway: RunningGateway, server: RecordingServer) -> None:
    async with recording_server() as other:
        moved = f"location: {other.base_url}/v1/embeddings"
        server.answer = lambda _: respond(b"", "text/plain", "307 Temporary Redirect", moved)
        answer = await gateway.client.post("/v1/embeddings", json={"model": "big"})
        assert answer.status_code == 502
        assert not other.opened


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("400 Bad Request", (400, "invalid_value")),
        ("401 Unauthorized", (502, "upstream_auth_error")),
        ("404 Not Found", (404, "model_not_found")),
        ("429 Too Many Requests", (429, "rate_limit_exceeded")),
        ("500 Oops", (502, "upstream_error")),
    ],
)
async def test_a_backends_error_is_told_as_on_other_routes(
    gateway: RunningGateway, server: RecordingServer, status: str, told: tuple[int, str]
) -> None:
    said = json.dumps({"error": {"message": f"the model says no to {KEY}"}}).encode()
    server.answer = lambda _: respond(said, status=status)
    answer = await gateway.client.post("/v1/embeddings", json={"model": "big"})
    assert (answer.status_code, code(answer)) == told
    assert KEY not in answer.text


async def test_an_error_before_the_end_of_the_body_reaches_the_client(
    gateway: RunningGateway, server: RecordingServer
) -> None:
    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(respond(b'{"error": {"message": "the file is too large"}}', status="413 Too Large"))
        while await reader.read(65536):
            pass
        return True

    server.early = early
    body = form(part("model", b"embed"), part("file", b"x" * 9 * MIB))
    answer = await gateway.client.post(TEXT, content=body, headers=FORM)
    assert (answer.status_code, code(answer)) == (413, "request_too_large")


async def test_an_answer_that_breaks_off_ends_with_its_connection(
    gateway: RunningGateway, server: RecordingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsoon\r\n")
        await writer.drain()
        return True

    server.early = early
    with pytest.raises(httpx.RemoteProtocolError):
        await gateway.client.post(SPEECH, json={"model": "big"})
    assert not [record for record in caplog.records if "did not complete" in record.message]


@pytest.mark.parametrize("status", ["200 OK", "201 Created"])
async def test_an_answer_in_a_coding_that_cannot_be_read_is_an_error(
    gateway: RunningGateway, server: RecordingServer, status: str
) -> None:
    """None of its bytes could be passed, under a length that promises them."""
    server.answer = lambda _: respond(b"packed", "audio/mpeg", status, "content-encoding: br")
    answer = await gateway.client.post(SPEECH, json={"model": "big"})
    assert (answer.status_code, code(answer)) == (502, "upstream_invalid_response")


async def test_an_error_whose_body_stalls_is_ended_by_idle(server: RecordingServer) -> None:
    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 8\r\n\r\n{")
        while await reader.read(65536):
            pass
        return True

    server.early = early
    async with running_gateway(settings_for(server, timeouts={"idle": 0.3, "total": 30})) as gateway:
        gateway.client.headers["authorization"] = f"Bearer {CLIENT_KEY}"
        # The rest of a large body arrives while the error is read.
        for size in (10, MIB, 9 * MIB):
            body = form(part("model", b"embed"), part("file", b"x" * size))
            answer = await gateway.client.post(TEXT, content=body, headers=FORM, timeout=10)
            assert (answer.status_code, code(answer)) == (504, "upstream_timeout")


@pytest.mark.parametrize(
    ("timeouts", "sent"),
    [({"total": 0.3}, b""), ({"idle": 0.3}, b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n")],
)
async def test_a_silent_backend_is_a_timeout(server: RecordingServer, timeouts: Json, sent: bytes) -> None:
    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(sent)
        await reader.read()  # the body
        await reader.read()  # the end
        return True

    server.early = early
    settings = settings_for(server, timeouts=timeouts)
    async with running_gateway(settings) as gateway:
        answer = await gateway.client.post(
            SPEECH, json={"model": "big"}, headers={"authorization": f"Bearer {CLIENT_KEY}"}
        )
        assert (answer.status_code, code(answer)) == (504, "upstream_timeout")


async def test_a_client_that_leaves_ends_the_upload(gateway: RunningGateway, server: RecordingServer) -> None:
    head = (
        f"POST {TEXT} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {CLIENT_KEY}\r\n"
        f"content-type: {FORM['content-type']}\r\ncontent-length: 900000\r\n\r\n"
    )
    begun = asyncio.Event()

    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        begun.set()
        return False

    server.early = early
    _, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(head.encode() + form(part("model", b"embed"), part("file", b"x" * 300_000), end=b""))
    async with asyncio.timeout(10):
        await begun.wait()
        writer.close()
        while not server.seen or gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.01)
    assert not server.seen[0].complete
    exposed = (await gateway.client.get("/metrics")).text
    assert 'status="499"' in exposed and 'route="passed"' in exposed


@pytest.mark.parametrize("large", [False, True])
async def test_a_refused_token_is_renewed(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """A body that is still arriving cannot be sent again: its client can."""
    monkeypatch.setenv("TEST_REFRESH", "refresh-0")
    server.answer = lambda seen: respond(
        b"{}", status="200 OK" if seen.headers["authorization"] == "Bearer token-2" else "401 Unauthorized"
    )
    body = form(part("model", b"big"), part("file", b"x" * (MIB if large else 10)))
    async with issuer_running() as issuer:
        refresh: Json = {"token_url": issuer.url, "refresh_token_env": "TEST_REFRESH"}
        settings = settings_for(server, api_key_env=None, refresh=refresh)
        async with running_gateway(settings) as gateway:
            gateway.client.headers["authorization"] = f"Bearer {CLIENT_KEY}"
            found = [await gateway.client.post(TEXT, content=body, headers=FORM) for _ in range(2)]
    assert [answer.status_code for answer in found] == ([503, 200] if large else [200, 200])
    assert not large or found[0].headers["retry-after"] == "1"


async def test_behind_another_server(server: RecordingServer, tmp_path: Path) -> None:
    """Stock uvicorn with h11: the body is streamed through the messages of ASGI."""
    async with uvicorn_running(tmp_path, settings_for(server), "--http", "h11") as stock:
        await stock.wait_ready()
        async with httpx.AsyncClient(
            base_url=stock.base_url, headers={"authorization": f"Bearer {CLIENT_KEY}"}, timeout=30
        ) as one:
            body = form(part("model", b"embed"), part("file", b"x" * 2 * MIB))
            answer = await one.post(TEXT, content=body, headers=FORM)
            assert answer.json() == {"text": "Hello"}
            assert server.seen[0].body == body.replace(b"embed", b"inner", 1)
            assert (await one.post(SPEECH, json={"model": "big"})).content == AUDIO
            assert (await one.post("/v1/audio%2fspeech", json={"model": "big"})).status_code == 404


@pytest.mark.parametrize("declared", [MIB, 3 * MIB])
async def test_a_server_that_does_not_hold_a_body_to_its_length(
    gateway: RunningGateway, server: RecordingServer, declared: int
) -> None:
    """The backend could read what is too much as another request."""
    body = form(part("model", b"big"), part("file", b"x" * 2 * MIB))
    head = {**FORM, "content-length": str(declared), "authorization": f"Bearer {CLIENT_KEY}", "host": "localhost"}
    through = httpx.ASGITransport(app=through_asgi(gateway.app))
    async with httpx.AsyncClient(transport=through, base_url="http://localhost", headers=head) as one:
        answer = await one.post(TEXT, content=body)
    assert (answer.status_code, code(answer)) == (400, "invalid_http")
    assert not any(seen.complete for seen in server.seen)


# --- limits


async def test_requests_count_in_the_limits_of_their_key(server: RecordingServer) -> None:
    async with passing_gateway(server, keys={"env-1": {"requests_per_minute": 2}}) as gateway:
        found = [(await gateway.client.post("/v1/embeddings", json={"model": "big"})).status_code for _ in range(3)]
        assert found == [200, 200, 429]


async def test_requests_count_for_their_backend(server: RecordingServer) -> None:
    settings = settings_for(server, max_concurrent=1)
    held = asyncio.Event()

    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await held.wait()
        return False

    server.early = early
    async with running_gateway(settings) as gateway:
        gateway.client.headers["authorization"] = f"Bearer {CLIENT_KEY}"
        first = asyncio.create_task(gateway.client.post("/v1/embeddings", json={"model": "big"}))
        async with asyncio.timeout(10):
            while not server.opened:  # noqa: ASYNC110 (no event)
                await asyncio.sleep(0.01)
        second = await gateway.client.post("/v1/embeddings", json={"model": "big"})
        assert (second.status_code, code(second)) == (503, "overloaded")
        held.set()
        assert (await first).status_code == 200


async def test_a_gateway_that_is_stopped_ends_them(gateway: RunningGateway, server: RecordingServer) -> None:
    async def early(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.read()
        return True

    server.early = early
    asked = asyncio.create_task(gateway.client.post("/v1/embeddings", json={"model": "big"}))
    async with asyncio.timeout(10):
        while not server.opened:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.01)
    gateway.app.gateway_state.stop()
    answer = await asked
    assert (answer.status_code, code(answer)) == (503, "server_shutdown")
    gateway.app.gateway_state.ready = False
    assert code(await gateway.client.post("/v1/embeddings", json={"model": "big"})) == "server_shutdown"


# --- settings


def test_config_check_finds_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.json"
    plain = {"base_url": "http://127.0.0.1:1"}
    entries = {
        "a": {**plain, "adapter": "text", "routes": {"POST /v1/x": "/x"}},
        "b": {**plain, "adapter": "openai_chat", "routes": {"GET /metrics": "/x"}},
        "c": {**plain, "adapter": "openai_chat", "routes": {"POST /v1/a b": "/x"}},
    }
    path.write_text(json.dumps({"backends": entries, "models": {"m": {"backend": "b"}}}))
    with pytest.raises(SystemExit):
        main(["config", "check", str(path)])
    said = capsys.readouterr().out
    assert "backends.a.routes: the adapter 'text'" in said
    assert "backends.b.routes.GET /metrics: the gateway serves" in said
    assert "backends.c.routes.POST /v1/a b: a route is" in said


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"adapter": "text", "routes": {"POST /v1/x": "/x"}}, "not one of an API that clients speak"),
        ({"routes": {"POST /v1/chat/completions": "/x"}}, "serves this route itself"),
        ({"routes": {"GET /metrics": "/x"}}, "serves this route itself"),
        ({"routes": {"GET /v1/responses": "/x"}}, "serves this route itself"),
        ({"routes": {"GET /inspect/x": "/x"}}, "serves this route itself"),
        ({"routes": {"POST /v1beta/models/x:generateContent": "/x"}}, "serves this route itself"),
        ({"routes": {"POST /v1/../x": "/x"}}, "a route is a method and a path"),
        ({"routes": {"POST /v1/%2e": "/x"}}, "a route is a method and a path"),
        ({"routes": {"CONNECT /v1/x": "/x"}}, "a route is a method and a path"),
        ({"routes": {"POST /v1/x": "//other.example/x"}}, "must be a path below base_url"),
        ({"routes": {"POST /v1/x": "http://other.example/x"}}, "must be a path below base_url"),
        ({"routes": {"POST /v1/x": "/a/../../x"}}, "must be a path below base_url"),
        ({"routes": {"POST /v1/x": "/x"}, "routes_without_model": ["POST /v1/y"]}, "did you mean 'POST /v1/x'?"),
    ],
)
async def test_routes_that_cannot_be_passed_are_refused(entry: dict[str, Json], said: str) -> None:
    backend: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1", **entry}
    with pytest.raises(SettingsError, match=r"backends\.b\.routes") as raised:
        async with running_gateway({"backends": {"b": backend}, "models": {"m": {"backend": "b"}}}):
            pass
    assert said in raised.value.message


def test_one_backend_gets_a_route_without_a_model() -> None:
    entry: Json = {
        "adapter": "openai_chat",
        "base_url": "http://127.0.0.1:1",
        "routes": {"POST /v1/x": "/x"},
        "routes_without_model": ["POST /v1/x"],
    }
    with pytest.raises(SettingsError, match=r"backends\.b\.routes_without_model"):
        read_settings({"backends": {"a": entry, "b": entry}})


async def test_routes_come_and_go_with_a_reload(gateway: RunningGateway, server: RecordingServer) -> None:
    settings = settings_for(server, routes={"GET /v1/audio/voices": "/audio/voices"}, routes_without_model=[])
    await gateway.app.gateway_state.change(read_settings(settings))
    gone = await gateway.client.post("/v1/embeddings", json={"model": "big"})
    assert (gone.status_code, code(gone)) == (404, "unknown_url")
    assert "backends.NAME.routes" in gone.json()["error"]["message"]
    await gateway.app.gateway_state.change(read_settings(settings_for(server)))
    assert (await gateway.client.post("/v1/embeddings", json={"model": "big"})).status_code == 200


@pytest.mark.parametrize("lost", ["backend", "route"])
async def test_a_reload_takes_the_route_of_a_body_that_is_arriving(
    gateway: RunningGateway, server: RecordingServer, lost: str
) -> None:
    body = b'{"input": "x"}'
    gone = asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        yield body[:5]
        async with asyncio.timeout(10):
            await gone.wait()
        yield body[5:]

    json_type = {"content-type": "application/json"}
    asked = asyncio.create_task(gateway.client.post("/v1/moderations", content=parts(), headers=json_type))
    async with asyncio.timeout(10):
        while not gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.01)
    settings: Any = settings_for(server, routes={"POST /v1/embeddings": "/embeddings"}, routes_without_model=[])
    if lost == "backend":
        settings["backends"].pop("audio")
        settings["models"] = {"m": {"backend": "plain"}}
    await gateway.app.gateway_state.change(read_settings(settings))
    gone.set()
    answer = await asked
    assert (answer.status_code, code(answer)) == (400, "missing_required_parameter")
    assert not server.seen
