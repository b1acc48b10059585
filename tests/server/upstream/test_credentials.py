"""Keys and refresh tokens, against a token issuer on a real socket."""

import asyncio
import base64
import json
import logging
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendUnavailable, SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.credentials import (
    Credential,
    RefreshedCredential,
    StaticCredential,
    credential_for,
    redact_secrets,
)
from gateway.settings import BackendSettings, RefreshCredential, read_settings
from gateway.testing.gateway import running_gateway
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import settings_for


class Issuer:
    """Gives `token-1`, `token-2`, ... as long as it is asked with the refresh token it expects."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.status = 200
        self.lifetime: object = "3600"
        self.rotates = False
        self.delay = 0.0
        self.behind = ""
        self.body = b""

    async def play(self, connection: Connection) -> None:
        assert connection.head.startswith(b"POST /token?key=web-key ")
        form = parse_qs(connection.body.decode())
        assert form["grant_type"] == ["refresh_token"]
        self.asked += form["refresh_token"]
        await asyncio.sleep(self.delay)
        if self.status != 200:
            await connection.send(answer(f"{self.status} No", b'{"error": {"message": "no, refresh-0"}}'))
            return
        number = len(self.asked)
        reply = {
            "access_token": f"token-{number}{self.behind}",
            "id_token": f"id-{number}",
            "expires_in": self.lifetime,
        }
        reply |= {"refresh_token": f"refresh-{number}"} if self.rotates else {}
        body = self.body or json.dumps(reply).encode()
        await connection.send(answer("200 OK", body, b"content-type: application/json"))


@asynccontextmanager
async def issuer_running() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with faulty_backend(issuer.play) as listening:
        issuer.url = f"{listening.base_url}/token?key=web-key"
        yield issuer


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuer_running() as running:
        yield running


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def refreshed(issuer: Issuer, clock: Clock, store: Path | None = None, **more: str) -> RefreshedCredential:
    settings = RefreshCredential(issuer.url, "UNUSED", str(store) if store else None, **more)
    return RefreshedCredential(settings, "refresh-0", clock)


async def test_a_token_is_bought_once_and_renewed_five_minutes_early(issuer: Issuer) -> None:
    clock = Clock()
    credential = refreshed(issuer, clock)
    issuer.delay = 0.05
    all_headers = await asyncio.gather(*(credential.headers() for _ in range(20)))
    assert set(map(str, all_headers)) == {str({"authorization": "Bearer token-1"})}
    clock.now += 3600 - 301
    assert (await credential.headers())["authorization"] == "Bearer token-1"
    clock.now += 2
    assert (await credential.headers())["authorization"] == "Bearer token-2"
    assert issuer.asked == ["refresh-0", "refresh-0"]


async def test_the_field_of_the_token_is_a_setting(issuer: Issuer) -> None:
    credential = refreshed(issuer, Clock(), token_field="id_token")
    assert (await credential.headers())["authorization"] == "Bearer id-1"


async def test_a_token_that_no_header_can_hold_is_none(issuer: Issuer) -> None:
    issuer.behind = "\r\nx-forged: yes"
    with pytest.raises(BackendUnavailable, match="contains no token"):
        await refreshed(issuer, Clock()).headers()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"access_token": "\xff"}', b"[" * 100_000])
async def test_a_reply_of_the_issuer_that_cannot_be_read_is_its_fault(issuer: Issuer, body: bytes) -> None:
    issuer.body = body
    with pytest.raises(BackendUnavailable, match="is not a JSON object"):
        await refreshed(issuer, Clock()).headers()


async def test_a_rotated_refresh_token_is_used_and_kept_privately(issuer: Issuer, tmp_path: Path) -> None:
    issuer.rotates = True
    store = tmp_path / "deep" / "token.json"
    clock = Clock()
    await refreshed(issuer, clock, store).headers()
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    await refreshed(issuer, clock, store).headers()
    assert issuer.asked == ["refresh-0", "refresh-1"]
    newer = RefreshedCredential(RefreshCredential(issuer.url, "UNUSED", str(store)), "new-login", clock)
    await newer.headers()
    assert issuer.asked[-1] == "new-login"
    store.write_bytes(b'{"login": "\xff", "refresh_token": ""}')
    await refreshed(issuer, clock, store).headers()
    assert issuer.asked[-1] == "refresh-0"


async def test_a_denied_refresh_is_an_error_and_no_loop(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.status = 400
    credential = refreshed(issuer, Clock())
    for _ in range(3):
        with pytest.raises(BackendError) as caught:
            await credential.headers()
        assert caught.value.code == "upstream_auth_error"
        assert caught.value.headers["x-should-retry"] == "false"
        assert "refresh-0" not in caught.value.message
    assert len(issuer.asked) == 1
    assert "refresh-0" not in caplog.text
    assert "web-key" not in caplog.text


async def test_an_issuer_that_is_down_does_not_end_a_valid_token(issuer: Issuer) -> None:
    clock = Clock()
    credential = refreshed(issuer, clock)
    await credential.headers()
    issuer.status = 503
    clock.now += 3400
    assert (await credential.headers())["authorization"] == "Bearer token-1"
    clock.now += 300
    with pytest.raises(BackendError) as caught:
        await credential.headers()
    assert caught.value.status == 502
    issuer.status = 200
    assert (await credential.headers())["authorization"] != "Bearer token-1"


@pytest.mark.parametrize("lifetime", [None, "soon", -1, [], 1e12, pytest.param(10**400, id="huge")])
async def test_odd_lifetimes_mean_an_hour(issuer: Issuer, lifetime: object) -> None:
    issuer.lifetime = lifetime
    clock = Clock()
    credential = refreshed(issuer, clock)
    await credential.headers()
    clock.now += 3000
    await credential.headers()
    assert len(issuer.asked) == 1


async def test_an_unreachable_issuer_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = RefreshCredential("http://127.0.0.1:1/token?key=web-key", "UNUSED")
    with pytest.raises(BackendError) as caught:
        await RefreshedCredential(settings, "refresh-0").headers()
    assert "web-key" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "refresh-0" not in caplog.text


async def test_a_refused_token_is_renewed_and_the_request_replayed_once(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_REFRESH", "refresh-0")

    async def script(connection: Connection) -> None:
        if b"Bearer token-2" in connection.head:
            await connection.send(HEAD, events("text Hello", "finish"), END)
        else:
            await connection.send(answer("401 x", b"bad token-1"))

    async with faulty_backend(script) as backend:
        settings = settings_for(backend.base_url)
        refresh: dict[str, Json] = {"token_url": issuer.url, "refresh_token_env": "TEST_REFRESH"}
        plain: Json = {
            "adapter": "tests.server.plain:PlainAdapter",
            "base_url": backend.base_url,
            "refresh": refresh,
        }
        async with running_gateway({**settings, "backends": {"plain": plain}}) as gateway:
            assert (await gateway.chat(stream=True)).text.endswith("data: [DONE]\n\n")
            assert len(backend.seen) == 2
            await gateway.chat()
            assert len(backend.seen) == 3

            async def refuse(connection: Connection) -> None:
                await connection.send(answer("401 x", b"bad token-3"))

            backend.script = refuse
            response = await gateway.chat()
    assert response.status_code == 401
    assert len(backend.seen) == 5
    assert "bad [redacted]" in response.text


async def test_a_static_key_and_its_redaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", " sk-1 ")
    bearer = credential_for(BackendSettings("a:B", "http://x", api_key_env="TEST_KEY"))
    assert await bearer.headers() == {"authorization": "Bearer sk-1"}
    assert bearer.redact("your key sk-1 is bad") == "your key [redacted] is bad"
    named = credential_for(BackendSettings("a:B", "http://x", api_key_env="TEST_KEY", api_key_header="X-Api-Key"))
    assert await named.headers() == {"x-api-key": "sk-1"}
    assert await StaticCredential().headers() == {}
    monkeypatch.setenv("TEST_KEY", "sk-1\r\nx-forged: yes")
    with pytest.raises(SettingsError, match="TEST_KEY") as caught:
        credential_for(BackendSettings("a:B", "http://x", api_key_env="TEST_KEY"))
    assert "sk-1" not in caught.value.message
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(SettingsError, match="TEST_KEY"):
        credential_for(BackendSettings("a:B", "http://x", api_key_env="TEST_KEY"))


def keyed(
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    api_key_header: str = "authorization",
    api_key_scheme: str | None = None,
) -> Credential:
    monkeypatch.setenv("TEST_KEY", value)
    entry = BackendSettings(
        "a:B", "http://x", api_key_env="TEST_KEY", api_key_header=api_key_header, api_key_scheme=api_key_scheme
    )
    return credential_for(entry)


@pytest.mark.parametrize(
    ("more", "headers"),
    [
        ({}, {"authorization": "Bearer AQVN-1"}),
        ({"api_key_scheme": "Api-Key"}, {"authorization": "Api-Key AQVN-1"}),
        ({"api_key_scheme": ""}, {"authorization": "AQVN-1"}),
        ({"api_key_header": "X-Key"}, {"x-key": "AQVN-1"}),
        ({"api_key_header": "X-Key", "api_key_scheme": "Token"}, {"x-key": "Token AQVN-1"}),
    ],
)
def test_a_key_has_the_scheme_of_its_entry(
    more: dict[str, str], headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keyed(monkeypatch, "AQVN-1", **more).ready == headers


def test_basic_is_that_of_rfc_7617_and_no_form_of_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    # The examples of RFC 7617, sections 2 and 2.1.
    aladdin = keyed(monkeypatch, "Aladdin:open sesame", api_key_scheme="Basic")
    assert aladdin.ready == {"authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}
    assert keyed(monkeypatch, "test:123\u00a3", api_key_scheme="basic").ready == {
        "authorization": "basic dGVzdDoxMjPCow=="
    }
    said = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== QWxhZGRpbjpvcGVuIHNlc2FtZQ (Aladdin:open sesame), open sesame"
    assert aladdin.redact(said) == "Basic [redacted] [redacted] ([redacted]), [redacted]"
    assert "sesame" not in repr(aladdin)
    assert keyed(monkeypatch, "a:b:cdef", api_key_scheme="Basic").redact("b:cdef") == "[redacted]"


PASSWORD: Final = 'p"ä/long pass:wörd9'


@pytest.mark.parametrize(
    "written",
    [
        PASSWORD,
        quote(PASSWORD, safe=""),
        quote(PASSWORD),
        json.dumps(PASSWORD)[1:-1],
        json.dumps(PASSWORD, ensure_ascii=False)[1:-1],
        base64.b64encode(PASSWORD.encode()).decode(),
        base64.b64encode(f"user:{PASSWORD}".encode()).decode(),
    ],
)
@pytest.mark.parametrize("place", ["scheme", "variable", "headers"])
async def test_a_password_of_basic_is_shown_in_no_form(
    place: str, written: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    header = f"Basic {base64.b64encode(f'user:{PASSWORD}'.encode()).decode()}"
    monkeypatch.setenv("TEST_KEY", f"user:{PASSWORD}" if place == "scheme" else header)
    keys: dict[str, dict[str, Json]] = {
        "scheme": {"api_key_env": "TEST_KEY", "api_key_scheme": "Basic"},
        "variable": {"api_key_env": "TEST_KEY"},
        "headers": {"headers": {"Authorization": header}},
    }

    async def script(connection: Connection) -> None:
        assert f"authorization: {header}".encode() in connection.head
        error = {"message": f"({written}) is odd", "type": "x", "code": "y"}
        await connection.send(answer("400 x", json.dumps({"error": error}).encode()))

    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, **keys[place]}
        more: dict[str, Json] = {"backends": {"b": entry}, "models": {"m": {"backend": "b"}, "*": {"backend": "b"}}}
        async with running_gateway({**more, "inspector": {"contents": "always"}}) as gateway:
            with caplog.at_level(logging.DEBUG, LOGGER.name):
                response = await gateway.chat()
                streamed = await gateway.chat(stream=True)
                listed = await gateway.client.get("/v1/models")
            shown = f"/inspect/api/requests/{response.headers['x-request-id']}"
            texts = [(await gateway.client.get(f"{shown}{part}?reveal=1")).text for part in ("", "/answer")]
    assert "([redacted]) is odd" in response.json()["error"]["message"]
    for text in (response.text, streamed.text, listed.text, caplog.text, *texts):
        assert written not in text and json.dumps(written)[1:-1] not in text


@pytest.mark.parametrize(
    ("value", "scheme", "said"),
    [
        ("sk-secret", "Basic", "the scheme Basic needs USER:PASSWORD"),
        ("user:se\x7fcret", "Basic", "without control characters"),
        ("Api-Key secret", "Api-Key", "it begins with Api-Key already"),
        ("secret\u20ac", "Api-Key", "contains characters that a header cannot have"),
    ],
)
def test_a_key_that_does_not_fit_its_scheme_is_refused(
    value: str, scheme: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError) as caught:
        keyed(monkeypatch, value, api_key_scheme=scheme)
    assert said in caught.value.message and "TEST_KEY" in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"api_key_env": "K", "api_key_scheme": "Api Key"}, "b.api_key_scheme must be the name of a scheme, such as"),
        (
            {"api_key_env": "K", "api_key_scheme": "secret" * 9},
            "b.api_key_scheme must be the name of a scheme, such as",
        ),
        ({"api_key_scheme": "Basic"}, "api_key_scheme belongs to api_key_env"),
        (
            {"api_key_scheme": "Basic", "refresh": {"token_url": "http://x", "refresh_token_env": "K"}},
            "api_key_scheme belongs to api_key_env, and a token of refresh is a bearer token",
        ),
    ],
)
def test_a_scheme_is_a_token_with_a_key(entry: dict[str, Json], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"backends": {"b": {"adapter": "openai_chat", "base_url": "http://x", **entry}}})
    assert said in caught.value.message and "secret" not in caught.value.message


async def test_a_backend_that_repeats_the_key_does_not_leak_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-secret")

    async def script(connection: Connection) -> None:
        assert b"authorization: Bearer sk-secret" in connection.head
        await connection.send(answer("400 x", b"key sk-secret is odd"))

    async with faulty_backend(script) as backend:
        entry: dict[str, Json] = {"adapter": "tests.server.plain:PlainAdapter", "base_url": backend.base_url}
        plain: Json = {**entry, "api_key_env": "TEST_KEY"}
        async with running_gateway({**settings_for(backend.base_url), "backends": {"plain": plain}}) as gateway:
            response = await gateway.chat()
    assert "[redacted]" in response.text
    assert "sk-secret" not in response.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key secret-1 and secret-1", "key [redacted] and [redacted]"),
        ("cut at secre…", "cut at [redacted]…"),
        ("cut at secr…", "cut at [redacted]…"),
        ("cut at sec…", "cut at sec…"),
        ("not cut at secre", "not cut at secre"),
        ("an x stays", "an x stays"),
        ("", ""),
    ],
)
def test_secrets_are_redacted_whole_or_cut(text: str, shown: str) -> None:
    assert redact_secrets(text, "secret-1", "", "x") == shown
