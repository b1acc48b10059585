"""Requests with a signature, checked by the server from the bytes that it has received."""

import hashlib
import hmac
import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

import msgspec
import pytest
from h2.errors import ErrorCodes

from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.proto.backend import ProtoAdapter
from gateway.adapter import UnsignedRequest
from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.diagnostics.doctor.requests import SHORT
from gateway.server.doctor.live_backend import LiveBackend
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.backends import Backends
from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http.headers import Headers
from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.schema_reflection import fetch_backend_schema
from gateway.server.upstream.transport import Transport, encode_http2_head
from gateway.settings import BackendSettings, read_settings
from gateway.testing import live
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from gateway.testing.live import LiveCase, LiveCheck
from tests.adapters.proto.backend.grpc_server import grpc_backend, sends
from tests.adapters.proto.backend.mappings import MAPPINGS
from tests.adapters.proto.backend.services import ANSWERS
from tests.examples.jackdaw import JackdawAdapter, JackdawOptions
from tests.server.backend import END, HEAD, Connection, FaultyBackend, answer, chunk, faulty_backend
from tests.server.upstream.http2.peer import Peer
from tests.server.upstream.http2.peer import serving as serving_http2

SECRET: Final = "wJalrXUtnFEMI/K7MDENG+canary-of-the-key"
ENTRY: Final[dict[str, Json]] = {
    "adapter": "tests.examples.jackdaw:JackdawAdapter",
    "api_key_env": "TEST_SIGNING_KEY",
    "key_id": "AKIDEXAMPLE",
}


class ListingOptions(JackdawOptions, frozen=True, forbid_unknown_fields=True):
    """Those of the Jackdaw."""


class ListingJackdaw(JackdawAdapter):
    """A Jackdaw with a list of models."""

    Options: ClassVar[type[msgspec.Struct]] = ListingOptions
    models_path = "/birds?of=a%20feather"
    models_headers: ClassVar[Mapping[str, str]] = {}

    def decode_models(self, body: bytes) -> tuple[str, ...]:
        return (body.decode(),)


SIGNED: Final[list[UnsignedRequest]] = []


class RecordingJackdaw(ListingJackdaw):
    """A Jackdaw that keeps what it signs."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        SIGNED.append(request)
        return {"x-signature": "1"}


class SignedChat(OpenAIChatAdapter):
    """A chat backend that wants the signature of the Jackdaw."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        return JackdawAdapter(JackdawOptions(key_id="AKIDEXAMPLE"), 1 << 20).sign(request, key, now)


class CountedSigner:
    """An adapter whose signature is the number of the try."""

    tries = 0

    @classmethod
    def sign(cls, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        cls.tries += 1
        assert abs(datetime.now(UTC) - now) < timedelta(seconds=30)
        return {"X-Signature": f"{request.method} {request.path} {request.headers['host']} {cls.tries} {key[:3]}"}


class SigningProto(CountedSigner, ProtoAdapter):
    """A protobuf backend that wants a signature."""


class KeylessChat(OpenAIChatAdapter):
    """A chat backend for whose signature no key is good enough."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        raise ValueError(f"{key} is no key")


class OverlappingChat(OpenAIChatAdapter):
    """A chat backend whose signature has a header that is there already."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        return {"Content-Type": "signed"}


class BrokenChat(OpenAIChatAdapter):
    """A chat backend whose signature has a value that no header can have."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        return {"x-token": f"{key}\n"}


class FramingChat(OpenAIChatAdapter):
    """A chat backend whose signature has a header that the transport alone sets."""

    def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
        return {"content-length": "1"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TEST_SIGNING_KEY", SECRET)
    CountedSigner.tries = 0
    yield


def is_signed(head: bytes, body: bytes, secret: str = SECRET) -> bool:
    """Whether the signature is that of the bytes, by AWS's description of Signature Version 4 for one that checks."""
    line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    algorithm, _, parts = headers["authorization"].partition(" ")
    found = dict(one.split("=", 1) for one in parts.split(", "))
    _, day, region, service, end = found["Credential"].split("/")
    path, _, query = target.partition("?")
    names = found["SignedHeaders"].split(";")
    listed = "".join(f"{name}:{headers[name]}\n" for name in names)
    canonical = "\n".join(
        [method, path.replace("%", "%25"), query, listed, found["SignedHeaders"], hashlib.sha256(body).hexdigest()]
    )
    scope = f"{day}/{region}/{service}/{end}"
    text = f"{algorithm}\n{headers['x-amz-date']}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, end):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    age = datetime.now(UTC) - datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    right = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "host" in names and abs(age) < timedelta(minutes=5) and right == found["Signature"]


async def guard(connection: Connection) -> None:
    """Answers a request with a signature, and quotes the other ones."""
    if is_signed(connection.head, connection.body):
        await connection.send(HEAD, chunk(b'data: {"text": "caw"}\n\ndata: {"tokens": 1}\n\n'), END)
    else:
        await connection.send(answer("403 x", b'{"error": "wrong: ' + SECRET.encode() + b'"}'))


@asynccontextmanager
async def signing(
    entry: dict[str, Json] = ENTRY, **models: Json
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    async with faulty_backend(guard) as backend:
        settings: dict[str, Json] = {
            "inspector": {"contents": "always"},
            "backends": {"b": {**entry, "base_url": f"{backend.base_url}/v1 of%2Fit"}},
            "models": models or {"m": {"backend": "b"}},
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


async def test_each_request_is_signed_as_it_is_sent_and_the_key_is_in_none(caplog: pytest.LogCaptureFixture) -> None:
    async with signing({**ENTRY, "headers": {"x-amz-team": "blue"}}) as (gateway, backend):
        with caplog.at_level(logging.DEBUG, LOGGER.name):
            for text in ("Hello", "日本 \u00e9"):
                response = await gateway.chat(messages=[{"role": "user", "content": text}])
                assert response.json()["choices"][0]["message"]["content"] == "caw", response.text
            explained = await gateway.client.post("/v1/explain", json=hello())
        sent = f"/inspect/api/requests/{response.headers['x-request-id']}/sent?reveal=1"
        recent = await gateway.client.get(sent)
    assert len(backend.seen) == 2
    for head, body in backend.seen:
        assert b"POST /v1%20of%2Fit/speak HTTP/1.1" in head
        assert b"SignedHeaders=content-type;host;x-amz-date;x-amz-team, " in head
        assert b"canary" not in head + body
    shown = caplog.text + explained.text + recent.text
    assert "/speak" in recent.text and explained.status_code == 200
    assert "canary" not in shown and "AWS4-HMAC-SHA256" not in shown


async def test_a_wrong_key_is_refused_and_no_part_of_it_is_quoted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TEST_SIGNING_KEY", f"wrong-canary:{SECRET}")
    async with signing() as (gateway, _):
        response = await gateway.chat()
    assert response.status_code == 403 or response.json()["error"]["code"] == "upstream_auth_error"
    assert "canary" not in response.text + caplog.text


async def test_a_signature_that_the_backend_quotes_is_not_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    async def quote(connection: Connection) -> None:
        await connection.send(answer("400 x", b'{"error": {"message": "%b"}}' % signature(connection.head)))

    def signature(head: bytes) -> bytes:
        return head.partition(b"authorization: ")[2].partition(b"\r\n")[0]

    chat: dict[str, Json] = {"adapter": f"{__name__}:SignedChat", "api_key_env": "TEST_SIGNING_KEY"}
    async with signing(chat) as (gateway, backend):
        backend.script = quote
        response = await gateway.chat()
    sent = signature(backend.seen[0][0]).decode()
    assert "Signature=" in sent and response.status_code == 400
    assert sent.rpartition("=")[2] not in response.text + caplog.text
    assert "SignedHeaders=" in response.text


async def test_the_list_of_models_is_signed() -> None:
    async def lists(connection: Connection) -> None:
        signed = is_signed(connection.head, connection.body)
        await connection.send(answer("200 OK", b"jackdaw") if signed else answer("403 x", b""))

    entry: dict[str, Json] = {**ENTRY, "adapter": f"{__name__}:ListingJackdaw"}
    models: dict[str, Json] = {"*": {"backend": "b"}}
    async with signing(entry, **models) as (gateway, backend):
        backend.script = lists
        listed = await gateway.client.get("/v1/models")
    assert [model["id"] for model in listed.json()["data"]] == ["jackdaw"], listed.text


@pytest.mark.parametrize("path", ['/v1 x/{a}|b^`"<>/%7e/日/a%2fb', "/v1/./x/../y"])
@pytest.mark.parametrize("headers", [{}, {"Connection": "close", "x-amz-team": " caf\u00e9 blue\t"}])
async def test_the_request_for_the_list_is_signed_as_it_is_sent(path: str, headers: Json) -> None:
    async def lists(connection: Connection) -> None:
        await connection.send(answer("200 OK", b"jackdaw"))

    SIGNED.clear()
    async with faulty_backend(lists) as backend:
        own: dict[str, Json] = {"adapter": f"{__name__}:RecordingJackdaw", "headers": headers}
        entry: Json = {**ENTRY, **own, "base_url": backend.base_url + path}
        async with running_gateway({"backends": {"b": entry}, "models": {"*": {"backend": "b"}}}) as gateway:
            await gateway.client.get("/v1/models")
    [(head, body)], [request] = backend.seen, SIGNED
    line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    assert line == f"{request.method} {request.path}?{request.query} HTTP/1.1"
    sent = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    assert {name: value for name, value in sent.items() if name != "x-signature"} == request.headers
    assert body == request.body


async def test_grpc_calls_are_signed() -> None:
    mapping = {"adapter": f"{__name__}:SigningProto", **MAPPINGS["talk"], "carrier": "grpc", "path": None}
    with grpc_backend(f"/{mapping['method']}", sends(ANSWERS["talk"])) as backend:
        entry: Json = {**mapping, "base_url": backend.base_url, "api_key_env": "TEST_SIGNING_KEY"}
        async with running_gateway({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}) as gateway:
            for _ in range(2):
                assert (await gateway.chat()).status_code == 200
    place = f"POST /{mapping['method']} 127.0.0.1:{backend.port}"
    assert [one["x-signature"] for one in backend.metadata] == [f"{place} 1 wJa", f"{place} 2 wJa"]
    assert all("authorization" not in one for one in backend.metadata)


async def test_a_request_that_is_sent_again_has_a_new_signature() -> None:
    async def refuse_once(peer: Peer) -> None:
        peer.greet()
        peer.reset(await peer.request(), ErrorCodes.REFUSED_STREAM)
        peer.answer(await peer.request())

    tries = []

    def signer(headers: Mapping[str, str], body: bytes) -> Headers:
        tries.append(headers["host"])
        return [("x-signature", str(len(tries)))]

    async with serving_http2(refuse_once) as (port, peers), Transport(2**20, MOST) as transport:
        head = encode_http2_head("POST", read_url(f"http://127.0.0.1:{port}/path"), {}, signer)
        response = await transport.send(head, b"body", 5, more=[("traceparent", "00")])
        response.close()
    assert tries == [f"127.0.0.1:{port}"] * 2
    assert [head[b"x-signature"] for head in peers[0].heads.values()] == [b"1", b"2"]
    assert [head[b"traceparent"] for head in peers[0].heads.values()] == [b"00", b"00"]


@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        ("KeylessChat", "The gateway's key for this backend cannot sign its requests."),
        ("BrokenChat", "The gateway's key for this backend cannot sign its requests."),
        ("FramingChat", "The gateway's key for this backend cannot sign its requests."),
        ("OverlappingChat", "The header 'Content-Type' is part of the signature, and the request has it already."),
    ],
)
async def test_what_cannot_be_signed_is_not_sent(adapter: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    entry: dict[str, Json] = {"adapter": f"{__name__}:{adapter}", "api_key_env": "TEST_SIGNING_KEY"}
    async with signing(entry) as (gateway, backend):
        response = await gateway.chat()
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["message"]) == (502, "upstream_auth_error", said)
    assert backend.seen == [] and "canary" not in response.text + caplog.text


async def test_a_list_whose_request_cannot_be_signed_is_not_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    entry: dict[str, Json] = {"adapter": f"{__name__}:BrokenChat", "api_key_env": "TEST_SIGNING_KEY"}
    models: dict[str, Json] = {"*": {"backend": "b"}}
    async with signing(entry, **models) as (gateway, backend):
        response = await gateway.client.get("/v1/models")
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_auth_error")
    assert backend.seen == [] and "canary" not in response.text + caplog.text


@pytest.mark.parametrize("check", [live.answers_a_question, live.refuses_what_is_no_request])
async def test_the_live_checks_sign(check: LiveCheck) -> None:
    async def strict(connection: Connection) -> None:
        assert is_signed(connection.head, connection.body)
        refused = connection.body.startswith(b"\xff")
        await (connection.send(answer("400 x", b"")) if refused else guard(connection))

    async with faulty_backend(strict) as backend:
        await check(LiveCase(JackdawAdapter, backend.base_url, key=SECRET))
        assert len(backend.seen) == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("api_key_env", None),
        ("api_key_scheme", "Bearer"),
        ("refresh", {"token_url": "http://host", "refresh_token_env": "TEST_SIGNING_KEY"}),
    ],
)
def test_an_adapter_that_signs_needs_a_key_alone(
    setting: str, value: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Json] = {
        "backends": {"b": {**ENTRY, "base_url": "http://host", setting: value}},
        "models": {"m": {"backend": "b"}},
    }
    said = f"backends.b.{setting}: its adapter signs requests with the key in api_key_env, without refresh and"
    with pytest.raises(SettingsError, match=re.escape(said)):
        Backends(read_settings(settings))
    # That depends on the settings alone.
    monkeypatch.delenv("TEST_SIGNING_KEY")
    path = tmp_path / "settings.json"
    path.write_bytes(msgspec.json.encode(settings))
    with pytest.raises(SystemExit) as left:
        main(["config", "check", str(path)])
    assert left.value.code == 1
    assert capsys.readouterr().out.count(said) == 1


async def test_reflection_never_sends_the_key_of_a_signature() -> None:
    entry = BackendSettings(f"{__name__}:SigningProto", "http://127.0.0.1:1", api_key_env="TEST_SIGNING_KEY")
    with pytest.raises(SettingsError, match="the adapter signs its requests"):
        await fetch_backend_schema(entry)


def test_the_check_of_the_settings_knows_such_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.json"
    for more, status in (({}, 0), ({"api_key_env": "TEST_NO_KEY"}, 1)):
        entry = {**ENTRY, "base_url": "http://127.0.0.1:9", **more}
        path.write_bytes(msgspec.json.encode({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}))
        with pytest.raises(SystemExit) as left:
            main(["config", "check", "--strict", str(path)])
        assert left.value.code == status, capsys.readouterr().out
    assert "warning: backends.b.api_key_env: the environment variable TEST_NO_KEY" in capsys.readouterr().out


async def test_the_doctor_signs_with_a_wrong_key_as_well() -> None:
    async with faulty_backend(guard) as backend:
        settings = read_settings(
            {"backends": {"b": {**ENTRY, "base_url": backend.base_url}}, "models": {"m": {"backend": "b"}}}
        )
        async with Transport(2**20, MOST) as transport:
            known = Backends(settings).known("b")
            assert known is not None
            live = LiveBackend(transport, known, settings.models["m"], "m")
            right = await live.ask(SHORT)
            wrong = await live.ask(msgspec.structs.replace(SHORT, key="wrong"))
    assert (right.error, len(backend.seen)) == (None, 2)
    assert wrong.error is not None
    assert is_signed(*backend.seen[1], secret="dragoman-doctor-wrong-key")
