"""No secret appears in the log, a response, a header, an event, the metrics, a span or a repr."""

import base64
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.server.log.logger import logging_to
from gateway.settings import LogSettings
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.server.backend import END, HEAD, Connection, FaultyBackend, answer, chunk, faulty_backend
from tests.server.conftest import PATIENT
from tests.server.telemetry.tracing.collector import Collector, collector_running, told
from tests.server.upstream.test_credentials import issuer_running

CLIENT: Final = "canary-of-the-client"
STATIC: Final = "canary-of-the-backend"
HEADER: Final = "canary-of-a-header"
COLLECTOR: Final = "canary-of-the-collector"
FIRST: Final = "refresh-0"  # what the made-up issuer expects
CANARIES: Final = (CLIENT, STATIC, HEADER, COLLECTOR, FIRST, "token-1", "token-2", "refresh-1", "web-key")
ENVIRONMENT: Final = {
    "TEST_CANARY_CLIENT": CLIENT,
    "TEST_CANARY_STATIC": STATIC,
    "TEST_CANARY_REFRESH": FIRST,
    "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={COLLECTOR}",
}
CHAT: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"


def _refusals(secret: str) -> dict[str, bytes]:
    """Answers of a backend that says its key aloud wherever it can."""
    said = secret.encode()
    echo = dict.fromkeys(("message", "type", "code", "param", "detail"), secret)
    loud = (b"x-key: %s" % said, b"set-cookie: k=%s" % said, b"retry-after: %s" % said)
    bodies = {
        "an object": json.dumps({"error": echo}).encode(),
        "a text": json.dumps({"error": secret}).encode(),
        "a list": json.dumps([{"error": echo}]).encode(),
        "cut": json.dumps({"error": {**echo, "message": "y" * 288 + secret}}).encode(),
        "HTML": f"<html>{secret}</html>".encode(),
        "a status line": b"",
    }
    told: dict[str, bytes] = {}
    for status in (302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503):
        location = (b"location: http://x/?key=%s" % said,)
        for name, body in bodies.items() if status in (400, 401, 500) else [("an object", bodies["an object"])]:
            told[f"{status} with {name}"] = answer(f"{status} {secret}", body, *loud, *location)
    event = b"data: %s\n\n" % json.dumps({"error": echo}).encode()
    loud_chunk = {"id": secret, "model": secret, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    told["an answer that names it"] = HEAD + chunk(b"data: %s\n\n" % json.dumps(loud_chunk).encode()) + END
    loud_chunk |= {"id": "y" * 250 + STATIC, "model": "y" * 1995 + STATIC}
    told["an answer that names it late"] = HEAD + chunk(b"data: %s\n\n" % json.dumps(loud_chunk).encode()) + END
    told["an error in the stream"] = HEAD + chunk(event) + END
    told["a broken event"] = HEAD + chunk(b"data: {%s\n\n" % said) + END
    told["another media type"] = answer("200 OK", b"{}", b"content-type: text/%s" % said)
    told["another encoding"] = answer("200 OK", b"{}", b"content-encoding: %s" % said)
    told["no HTTP"] = said + b"\r\n\r\n"
    return told


REFUSALS: Final = {f"{secret}: {name}": told for secret in (STATIC, HEADER) for name, told in _refusals(secret).items()}
# In a success there is one word of the backend that is no part of the answer.
ODD_FINISH: Final = (
    HEAD
    + chunk(
        b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"%s"}]}\n\ndata: [DONE]\n\n'
        % STATIC.encode()
    )
    + END
)


class _Scripted:
    """A backend that sends `answer`, whatever the request."""

    def __init__(self) -> None:
        self.answer = b""

    async def __call__(self, connection: Connection) -> None:
        await connection.send(self.answer)
        if not self.answer.startswith(b"HTTP/1.1 "):
            connection.reset()


def _settings(backend: FaultyBackend, token_url: str, collector: Collector) -> dict[str, Json]:
    entry: dict[str, Json] = {"base_url": backend.base_url, "timeouts": dict(PATIENT)}
    headers: Json = {"x-more": f"Token {HEADER}"}
    static: dict[str, Json] = {**entry, "api_key_env": "TEST_CANARY_STATIC", "headers": headers}
    plain: Json = {"adapter": "tests.server.plain:PlainAdapter", **static}
    refresh: Json = {"token_url": token_url, "refresh_token_env": "TEST_CANARY_REFRESH"}
    return {
        "server": {"api_keys_env": "TEST_CANARY_CLIENT"},
        "log": {"level": "debug", "bodies": True},
        "tracing": {"endpoint": collector.url},
        "backends": {
            "chat": {"adapter": CHAT, **static},
            "plain": plain,
            "fresh": {"adapter": CHAT, **entry, "refresh": refresh},
        },
        "models": {"chat": {"backend": "chat"}, "m": {"backend": "plain"}, "fresh": {"backend": "fresh"}},
    }


class WatchedGateway:
    """A gateway whose every output is collected: `heard` is all of it."""

    def __init__(self, gateway: RunningGateway, backend: _Scripted, collector: Collector) -> None:
        self.gateway = gateway
        self.collector = collector
        self.backend = backend
        self.heard: list[str] = []

    async def ask(self, reply: bytes, **fields: Json) -> None:
        """One request that the backend answers like this; the key also stands in the prompt."""
        self.backend.answer = reply
        prompt: Json = [{"role": "user", "content": f"My key is {CLIENT}, yours may be {STATIC}."}]
        response = await self.gateway.client.post(
            "/v1/chat/completions",
            json={**hello("chat"), "messages": prompt, **fields},
            headers={"x-dragoman-explain": "1"},
        )
        self.heard.append(f"{response.status_code} {dict(response.headers)} {response.text}")


@asynccontextmanager
async def _watched_gateway(monkeypatch: pytest.MonkeyPatch, log: Path) -> AsyncIterator[WatchedGateway]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    script = _Scripted()
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(issuer_running())
        issuer.rotates = True
        backend = await stack.enter_async_context(faulty_backend(script))
        collector = await stack.enter_async_context(collector_running())
        gateway = await stack.enter_async_context(running_gateway(_settings(backend, issuer.url, collector)))
        stack.enter_context(logging_to(LogSettings("debug", str(log), bodies=True), gateway.app.gateway_state.redact))
        gateway.client.headers["authorization"] = f"Bearer {CLIENT}"
        yield WatchedGateway(gateway, script, collector)


def _sing(heard: str) -> list[str]:
    return [canary for canary in CANARIES if canary in heard]


async def test_no_answer_and_no_line_of_the_log_shows_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "gateway.log"
    async with _watched_gateway(monkeypatch, log) as watched:
        for model in ("chat", "m", "fresh"):
            for place, reply in enumerate(REFUSALS.values()):
                await watched.ask(reply, model=model, stream=place % 2 == 0)
        # A bug whose exception quotes the backend.
        for secret in (STATIC, HEADER):
            await watched.ask(HEAD + chunk(b"data: bug %s\n\n" % secret.encode()) + END, model="m")
        for path in ("/metrics", "/v1/models", "/openapi.json", "/docs", "/nowhere"):
            watched.heard.append((await watched.gateway.client.get(path)).text)
        watched.heard.append((await watched.gateway.client.post("/v1/explain", json=hello("chat"))).text)
        gateway_state = watched.gateway.app.gateway_state
        for part in (
            gateway_state.settings,
            gateway_state,
            gateway_state.backends,
            gateway_state.keys,
            gateway_state.transport,
            gateway_state.tracing,
        ):
            watched.heard.append(repr(part))
    spans = watched.collector.spans()
    assert len(spans) > 180 and any(told(span).get("gen_ai.response.model") == "[redacted]" for span in spans)
    for span in spans:
        assert _sing(str(span)) == [], str(span)
        assert "My key" not in str(span) and "yyyy" + STATIC[:4] not in str(span)
    written = log.read_text()
    assert "Traceback" in written and "ZeroDivisionError" in written
    assert "Client request: " in written
    assert len(watched.heard) > 180
    for heard in watched.heard:
        assert _sing(heard) == [], heard[:2000]
    for line in written.splitlines():
        assert _sing(line) == [], line[:2000]
    # What a long message is cut to must not end in half a secret either.
    assert not [heard for heard in watched.heard if "yyyy" + "canary"[:4] in heard]
    assert [heard for heard in watched.heard if "yyyy" in heard]
    assert "yyyy" + "canary"[:4] not in written
    for status in (401, 500):
        said = [line for line in written.splitlines() if f"upstream_status={status} " in line]
        assert [line for line in said if "said='[redacted]'" in line] and [line for line in said if "yyyy" in line]


PASSWORD: Final = "canary-of-the-password"
ENCODED: Final = base64.b64encode(f"a-user:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize("secret", [ENCODED, ENCODED.rstrip("="), PASSWORD], ids=["encoded", "unpadded", "plain"])
async def test_no_form_of_a_password_is_shown(secret: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ENCODED.endswith("=")
    monkeypatch.setenv("TEST_CANARY_BASIC", f"a-user:{PASSWORD}")
    script, log = _Scripted(), tmp_path / "gateway.log"
    async with faulty_backend(script) as backend:
        entry: Json = {
            "adapter": CHAT,
            "base_url": backend.base_url,
            "api_key_env": "TEST_CANARY_BASIC",
            "api_key_scheme": "Basic",
        }
        settings: dict[str, Json] = {"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(settings) as gateway:
            with logging_to(LogSettings("debug", str(log), bodies=True), gateway.app.gateway_state.redact):
                for script.answer in _refusals(secret).values():
                    response = await gateway.client.post("/v1/chat/completions", json=hello())
                    assert secret not in f"{dict(response.headers)} {response.text}"
    assert all(f"Basic {ENCODED}".encode() in head for head, _ in backend.seen)
    written = log.read_text()
    assert secret not in written and "said='[redacted]'" in written


STRANGER: Final = "canary-of-a-stranger"
CONTENTS: Final[Json] = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
GEMINI: Final[tuple[tuple[str, str, Json], ...]] = (
    ("POST", "/v1beta/models/chat:generateContent", CONTENTS),
    ("POST", "/v1/models/chat:streamGenerateContent", CONTENTS),
    ("POST", "/v1beta/models/chat:countTokens", CONTENTS),
    ("POST", "/v1beta/models/chat:generateContent", {"contents": 1}),
    ("POST", "/v1beta/models/chat:embedContent", {}),
    ("GET", "/v1beta/models", None),
    ("GET", "/v1beta/models/nothing", None),
    ("PUT", "/v1beta/models", None),
    ("GET", "/nowhere", None),
)


@pytest.mark.parametrize(("key", "statuses"), [(CLIENT, {200, 400, 401, 404, 405}), (STRANGER, {401})])
async def test_nothing_shows_the_key_of_a_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, statuses: set[int]
) -> None:
    log = tmp_path / "gateway.log"
    async with _watched_gateway(monkeypatch, log) as watched:
        client = watched.gateway.client
        del client.headers["authorization"]
        watched.backend.answer = ODD_FINISH
        seen: set[int] = set()
        for method, path, body in GEMINI:
            response = await client.request(method, path, params={"key": key, "alt": "sse"}, json=body)
            seen.add(response.status_code)
            watched.heard.append(f"{dict(response.headers)} {response.text}")
        assert seen == statuses
        client.headers["authorization"] = f"Bearer {CLIENT}"
        watched.heard.append((await client.get("/metrics")).text)
    lines = log.read_text().splitlines()
    assert len([line for line in lines if "/v1beta/models" in line]) > 4
    for heard in (*watched.heard, *lines, *map(str, watched.collector.spans())):
        assert key not in heard and "alt=sse" not in heard, heard[:2000]


async def test_the_feed_shows_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with _watched_gateway(monkeypatch, tmp_path / "log") as watched:
        shown: list[str] = []
        async with watched.gateway.client.stream("GET", "/v1/events") as feed:
            lines = feed.aiter_lines()
            for reply in REFUSALS.values():
                await watched.ask(reply)
            await watched.ask(ODD_FINISH)
            async for line in lines:
                shown.append(line)
                if sum(line.startswith("event: request") for line in shown) == len(REFUSALS) + 1:
                    break
        assert _sing("\n".join(shown)) == []
        assert any("FINISH_REASON_UNKNOWN" in line for line in shown)


async def test_credentials_keep_their_secret_in_repr_and_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_CANARY_STATIC", STATIC)
    from gateway.server.upstream.credentials import credential_for
    from gateway.settings import BackendSettings

    credential = credential_for(BackendSettings(CHAT, "http://x", api_key_env="TEST_CANARY_STATIC"))
    assert (await credential.headers())["authorization"].endswith(STATIC)
    assert STATIC not in repr(credential)
    try:
        raise RuntimeError(credential)
    except RuntimeError:
        assert STATIC not in traceback.format_exc()
        logging.getLogger("test").debug("%r", credential)
