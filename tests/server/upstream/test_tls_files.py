"""A gateway in front of real TLS servers with certificates of a private root: HTTP/1.1, and gRPC over HTTP/2."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.backends import Backends
from gateway.server.upstream.http import tls
from gateway.server.upstream.model_list import fetch_models
from gateway.settings import TlsSettings, read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.proto.backend.grpc_server import Context, GrpcBackend, grpc_backend
from tests.adapters.proto.backend.mappings import MAPPINGS
from tests.adapters.proto.backend.services import ANSWERS
from tests.certificates import Authority
from tests.server.backend import END, HEAD, Connection, FaultyBackend, answer, events
from tests.server.upstream.http1.peer import serving

PLAIN: Final = "tests.server.plain:PlainAdapter"
REFUSED: Final = (502, "upstream_tls_error")


@pytest.fixture(autouse=True)
def contexts_of_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests share the contexts of the system, to which these add certificates."""
    monkeypatch.setattr(ssl, "create_default_context", ssl.create_default_context.__wrapped__)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def ca_file(authority: Authority, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.root.certificate)
    return str(path)


def client_name(connection: Connection) -> str:
    """The name in the client's certificate."""
    found: Any = connection.writer.get_extra_info("peercert")  # Any: ssl has no type for it
    return "" if not found else str(found["subject"][0][0][1])


async def tell_client(connection: Connection) -> None:
    """Answers with the name of the client."""
    await connection.send(HEAD, events(f"text {client_name(connection) or 'nobody'}", "finish"), END)


@asynccontextmanager
async def secure(authority: Authority, folder: Path, *, asks: bool) -> AsyncIterator[FaultyBackend]:
    """A backend over HTTP/1.1 that tells the names of its clients."""
    backend = FaultyBackend(tell_client)
    async with serving(backend.serve, context=authority.server(folder, "http/1.1", asks=asks)) as port:
        backend.port, backend.scheme = port, "https"
        yield backend
        await backend.close()


def settings(*entries: dict[str, Json]) -> dict[str, Json]:
    names = [f"m{number}" if number else "m" for number in range(len(entries))]
    return {
        "backends": {name: dict(entry) for name, entry in zip(names, entries, strict=True)},
        "models": {name: {"backend": name} for name in names},
    }


async def changed(gateway: RunningGateway, others: dict[str, Json]) -> None:
    await gateway.app.gateway_state.change(read_settings({"server": {"api_keys_env": None}, **others}))


async def said(gateway: RunningGateway, model: str = "m") -> str:
    response = await gateway.chat(model=model)
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


async def refusal(gateway: RunningGateway, model: str = "m") -> tuple[int, str]:
    response = await gateway.chat(model=model)
    return response.status_code, response.json()["error"]["code"]


async def test_a_private_root_is_trusted_where_it_is_named(authority: Authority, ca_file: str, tmp_path: Path) -> None:
    async with secure(authority, tmp_path, asks=False) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url}
        async with running_gateway(settings(entry, {**entry, "tls": {"ca_file": ca_file}})) as gateway:
            assert await refusal(gateway) == REFUSED
            assert await said(gateway, "m1") == "nobody"


async def test_a_named_root_is_trusted_alone(authority: Authority, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("Another root").root.certificate)
    async with secure(authority, tmp_path, asks=False) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": {"ca_file": str(other)}}
        async with running_gateway(settings(entry)) as gateway:
            assert await refusal(gateway) == REFUSED


async def test_each_backend_shows_its_own_certificate(authority: Authority, ca_file: str, tmp_path: Path) -> None:
    one, key = authority.sign("one").write(tmp_path, "one")
    two = tmp_path / "two.pem"
    signed = authority.sign("two")
    two.write_bytes(b"a comment\n" + signed.key + signed.certificate)
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url}
        files: list[dict[str, Json]] = [
            {"ca_file": ca_file},
            {"ca_file": ca_file, "cert_file": one, "key_file": key},
            {"ca_file": ca_file, "cert_file": str(two)},
        ]
        async with running_gateway(settings(*({**entry, "tls": tls} for tls in files))) as gateway:
            # The same address, and connections of their own.
            assert [await said(gateway, name) for name in ("m1", "m2", "m1", "m2")] == ["one", "two", "one", "two"]
            assert (await refusal(gateway))[0] == 502
        assert len(backend.seen) == 4


@contextmanager
def asking_for_certificates(context: ssl.SSLContext) -> Iterator[int]:
    """The port of a server that says why it refuses a client: OpenSSL itself writes to the socket, other than in
    asyncio, which drops what it would say."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                # Closed with unread bytes, a socket is reset, and what was said last may be lost.
                with sock.dup() as raw:
                    with contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as secured:
                        secured.recv(1)
                    with contextlib.suppress(OSError):
                        raw.shutdown(socket.SHUT_WR)
                        while raw.recv(2**16):
                            pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("wire", ["h2", "http/1.1"])
async def test_a_backend_that_refuses_the_certificate_says_why(
    wire: str,
    version: ssl.TLSVersion,
    authority: Authority,
    ca_file: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = authority.server(tmp_path, wire, asks=True)
    context.maximum_version = version
    certificate, key = Authority("Unknown to the server").sign("stranger").write(tmp_path, "stranger")
    mapping: dict[str, Json] = {"adapter": "proto", **MAPPINGS["talk"], "carrier": "grpc", "path": None}
    with asking_for_certificates(context) as port:
        entry: dict[str, Json] = {
            **(mapping if wire == "h2" else {"adapter": PLAIN}),
            "base_url": f"https://127.0.0.1:{port}",
        }
        files: list[Json] = [
            {"ca_file": ca_file},
            {"ca_file": ca_file, "cert_file": certificate, "key_file": key},
        ]
        async with running_gateway(settings(*({**entry, "tls": tls} for tls in files))) as gateway:
            with caplog.at_level(logging.INFO, LOGGER.name):
                assert [await refusal(gateway, name) for name in ("m", "m1")] == [REFUSED, REFUSED]
    without = "HANDSHAKE_FAILURE" if version is ssl.TLSVersion.TLSv1_2 else "CERTIFICATE_REQUIRED"
    assert without in caplog.text and "UNKNOWN_CA" in caplog.text


@asynccontextmanager
async def talking(
    authority: Authority, tls: dict[str, Json], **entry: Json
) -> AsyncIterator[tuple[RunningGateway, GrpcBackend, list[str]]]:
    """A gateway in front of the official server of gRPC, which asks for a certificate; and the names of its clients."""
    names: list[str] = []

    def play(request: bytes, context: Context) -> Iterator[bytes]:
        names.extend(name.decode() for name in context.auth_context()["x509_common_name"])
        yield from ANSWERS["talk"]

    signed = authority.sign("server")
    credentials = grpc.ssl_server_credentials(
        [(signed.key, signed.certificate)], authority.root.certificate, require_client_auth=True
    )
    mapping = {"adapter": "proto", **MAPPINGS["talk"], "carrier": "grpc", "path": None, "tls": tls, **entry}
    with grpc_backend(f"/{mapping['method']}", play, tls=credentials) as backend:
        async with running_gateway(settings({**mapping, "base_url": backend.base_url})) as gateway:
            yield gateway, backend, names


async def test_grpc_has_the_same_files_and_the_same_credentials(
    authority: Authority, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_TLS_KEY", "AQVN-1")
    certificate, key = authority.sign("of grpc").write(tmp_path, "client")
    tls: dict[str, Json] = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
    scheme: dict[str, Json] = {"api_key_env": "TEST_TLS_KEY", "api_key_scheme": "Api-Key"}
    async with talking(authority, tls, **scheme) as (gateway, backend, names):
        assert await said(gateway) == "Good morning, 日本."
    assert names == ["of grpc"]
    assert backend.metadata[0]["authorization"] == "Api-Key AQVN-1"
    own: dict[str, Json] = {"api_key_env": "TEST_TLS_KEY", "api_key_header": "X-Acme-Key"}
    async with talking(authority, tls, **own) as (gateway, backend, _):
        await said(gateway)
    assert backend.metadata[0]["x-acme-key"] == "AQVN-1" and "authorization" not in backend.metadata[0]


async def test_grpc_without_a_certificate_or_its_root_is_refused(
    authority: Authority, ca_file: str, tmp_path: Path
) -> None:
    async with talking(authority, {}) as (gateway, _, names):
        assert await refusal(gateway) == REFUSED
    async with talking(authority, {"ca_file": ca_file}) as (gateway, _, names):
        # This server closes the connection without a word.
        assert await refusal(gateway) == (502, "upstream_connection_error")
    assert names == []


async def test_replaced_files_are_noticed_and_open_connections_go_on(
    authority: Authority, ca_file: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.sign("first").write(tmp_path, "client")
    going_on = asyncio.Event()

    async def hold(connection: Connection) -> None:
        await connection.send(HEAD, events("text begun, "))
        await going_on.wait()
        await connection.send(events(f"text {client_name(connection)}", "finish"), END)

    async with secure(authority, tmp_path, asks=True) as backend:
        tls: Json = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": tls}
        async with running_gateway(settings(entry)) as gateway:
            with caplog.at_level(logging.INFO, LOGGER.name):
                backend.script = hold
                running = asyncio.ensure_future(said(gateway))
                async with asyncio.timeout(20):
                    await backend.requested.wait()
                backend.script = tell_client
                # A symbolic link that leads elsewhere, as Kubernetes replaces the files of a secret.
                authority.sign("second").write(tmp_path, "next")
                for name in ("client.pem", "client.key"):
                    link = tmp_path / f"{name}.link"
                    link.symlink_to(tmp_path / name.replace("client", "next"))
                    os.replace(link, tmp_path / name)
                assert await said(gateway) == "second"
                going_on.set()
                assert await running == "begun, first"
                assert "replaced TLS files are in use from the next connection on: " in caplog.text
                # A key that does not fit yet: the old pair stays.
                backend.hang_up()
                (tmp_path / "next.key").write_bytes(authority.sign("third").key)
                assert await said(gateway) == "second"
                backend.hang_up()
                assert await said(gateway) == "second"
                assert caplog.text.count("cannot be used, and the old ones stay in use") == 1
                assert "does not fit the certificate" in caplog.text
                backend.hang_up()
                (tmp_path / "next.pem").unlink()
                assert await said(gateway) == "second"
                authority.sign("fourth").write(tmp_path, "next")
                backend.hang_up()
                assert await said(gateway) == "fourth"
    assert "PRIVATE KEY" not in caplog.text and "BEGIN" not in caplog.text


async def test_the_next_request_has_the_replaced_files_although_a_connection_is_open(
    authority: Authority, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_S", 0)
    certificate, key = authority.sign("first").write(tmp_path, "client")
    files: dict[str, Json] = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": files}
        async with running_gateway(settings(entry)) as gateway:
            before = [await said(gateway) for _ in range(2)]
            authority.sign("second").write(tmp_path, "client")
            assert [*before, await said(gateway)] == ["first", "first", "second"]
    async with talking(authority, files) as (gateway, _, names):
        await said(gateway)
        authority.sign("third").write(tmp_path, "client")
        await said(gateway)
        await said(gateway)
    assert names == ["second", "third", "third"]


@pytest.mark.parametrize("wire", ["h2", "http/1.1"])
async def test_a_pair_half_replaced_before_the_first_connection_leaves_that_of_the_start(
    wire: str, authority: Authority, ca_file: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.sign("first").write(tmp_path, "client")
    files: dict[str, Json] = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
    half = authority.sign("half").certificate
    if wire == "h2":
        async with talking(authority, files) as (gateway, _, names):
            (tmp_path / "client.pem").write_bytes(half)
            await said(gateway)
        assert names == ["first"]
        return
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": files}
        async with running_gateway(settings(entry)) as gateway:
            (tmp_path / "client.pem").write_bytes(half)
            for _ in range(3):
                assert await said(gateway) == "first"
                backend.hang_up()
    assert caplog.text.count("cannot be used, and the old ones stay in use") == 1


async def test_idle_connections_with_replaced_files_are_closed(
    authority: Authority, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_S", 0)
    certificate, key = authority.sign("first").write(tmp_path, "client")
    files: dict[str, Json] = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": files}
        async with running_gateway(settings(entry)) as gateway:
            await said(gateway)
            backend.closed.clear()
            authority.sign("second").write(tmp_path, "client")
            assert await said(gateway) == "second"
            async with asyncio.timeout(5):
                await backend.closed.wait()


def test_files_that_cannot_be_used_are_read_once_for_each_change(
    files: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(files)
    contexts = tls.TlsContexts()
    pair = TlsSettings(cert_file="one.pem", key_file="two.key")
    for _ in range(3):
        with pytest.raises(SettingsError, match="does not fit the certificate") as caught:
            contexts.context(pair, "h2")
        assert isinstance(caught.value.__cause__, ssl.SSLError)
    assert caplog.text.count("the TLS files of a backend cannot be used") == 1
    os.replace("two.pem", "one.pem")
    assert contexts.context(pair, "h2") is contexts.context(pair, "h2")


async def test_files_are_looked_at_once_a_second_at_most(
    authority: Authority, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_S", 3600)
    certificate, key = authority.sign("first").write(tmp_path, "client")
    files: Json = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url, "tls": files}
        async with running_gateway(settings(entry)) as gateway:
            before = await said(gateway)
            authority.sign("second").write(tmp_path, "client")
            assert [before, await said(gateway)] == ["first", "first"]


async def test_a_reload_takes_other_files_from_the_next_request_on(
    authority: Authority, ca_file: str, tmp_path: Path
) -> None:
    async with secure(authority, tmp_path, asks=True) as backend:
        entry: dict[str, Json] = {"adapter": PLAIN, "base_url": backend.base_url}

        def shown(name: str) -> dict[str, Json]:
            certificate, key = authority.sign(name).write(tmp_path, name)
            return settings({**entry, "tls": {"ca_file": ca_file, "cert_file": certificate, "key_file": key}})

        async with running_gateway(shown("first")) as gateway:
            assert await said(gateway) == "first"
            await changed(gateway, shown("second"))
            assert await said(gateway) == "second"
            (tmp_path / "third.key").touch()
            with pytest.raises(SettingsError, match=r"tls\.key_file"):
                broken = settings(
                    {
                        **entry,
                        "tls": {"cert_file": str(tmp_path / "first.pem"), "key_file": str(tmp_path / "third.key")},
                    }
                )
                await changed(gateway, broken)
            assert await said(gateway) == "second"


async def test_the_list_of_models_has_the_same_files(authority: Authority, ca_file: str, tmp_path: Path) -> None:
    certificate, key = authority.sign("one").write(tmp_path, "one")

    async def lists(connection: Connection) -> None:
        body = b'{"data": [{"id": "%s"}]}' % client_name(connection).encode()
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    async with secure(authority, tmp_path, asks=True) as backend:
        backend.script = lists
        tls: Json = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "tls": tls}
        async with running_gateway({"backends": {"b": entry}, "models": {"*": {"backend": "b"}}}) as gateway:
            listed = await gateway.client.get("/v1/models")
            assert [model["id"] for model in listed.json()["data"]] == ["one"]


async def test_the_list_of_models_keeps_the_old_files_too_and_fails_as_an_answer_does(
    authority: Authority, ca_file: str, tmp_path: Path
) -> None:
    certificate, key = authority.sign("one").write(tmp_path, "one")

    async def lists(connection: Connection) -> None:
        await connection.send(answer("200 OK", b'{"data": [{"id": "%s"}]}' % client_name(connection).encode()))

    async with secure(authority, tmp_path, asks=True) as backend:
        backend.script = lists
        files: Json = {"ca_file": ca_file, "cert_file": certificate, "key_file": key}
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "tls": files}
        lists_of_models: dict[str, Json] = {"backends": {"b": entry}, "models": {"*": {"backend": "b"}}}
        async with running_gateway(lists_of_models) as gateway:
            (tmp_path / "one.key").write_bytes(authority.sign("two").key)
            listed = await gateway.client.get("/v1/models")
            assert [model["id"] for model in listed.json()["data"]] == ["one"]
        authority.sign("two").write(tmp_path, "one")
        (tmp_path / "ca.pem").write_bytes(Authority("Another root").root.certificate)
        async with running_gateway(lists_of_models) as gateway:
            listed = await gateway.client.get("/v1/models")
            assert (listed.status_code, listed.json()["error"]["code"]) == REFUSED


async def test_the_files_are_read_once_for_the_lists_of_models(
    authority: Authority, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = ssl.create_default_context

    async def lists(connection: Connection) -> None:
        await connection.send(answer("200 OK", b'{"data": [{"id": "one"}]}'))

    async with secure(authority, tmp_path, asks=False) as backend:
        backend.script = lists
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "tls": {"ca_file": ca_file}}
        known = Backends(read_settings({"backends": {"b": entry}, "models": {"*": {"backend": "b"}}})).known("b")
        assert known is not None

        def counted(*, cadata: str) -> ssl.SSLContext:
            read.append(cadata)
            return load(cadata=cadata)

        monkeypatch.setattr(ssl, "create_default_context", counted)
        for _ in range(3):
            assert [model.name for model in await fetch_models(known, {})] == ["one"]
    assert read == []


def built(tls: dict[str, Json], base_url: str = "https://host") -> Backends:
    return Backends(read_settings(settings({"adapter": PLAIN, "base_url": base_url, "tls": tls})))


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> Path:
    """A folder with sound files, and with broken ones."""
    authority.sign("one").write(tmp_path, "one")
    authority.sign("two").write(tmp_path, "two")
    (tmp_path / "root.pem").write_bytes(authority.root.certificate)
    (tmp_path / "encrypted.key").write_bytes(authority.sign("x").key_with(BestAvailableEncryption(b"canary")))
    (tmp_path / "text.pem").write_text("canary")
    (tmp_path / "cut.pem").write_bytes(authority.root.certificate + authority.root.certificate[:200])
    damaged = authority.root.certificate.splitlines()
    (tmp_path / "damaged.pem").write_bytes(b"\n".join([damaged[0], b"Y2FuYXJ5" * 8, damaged[-1]]))
    return tmp_path


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        ({"ca_file": "none.pem"}, "tls.ca_file: 'none.pem' cannot be read: No such file or directory"),
        ({"ca_file": "."}, "tls.ca_file: '.' cannot be read: Is a directory"),
        ({"ca_file": "text.pem"}, "tls.ca_file: 'text.pem' holds no certificate in PEM form"),
        ({"ca_file": "one.key"}, "tls.ca_file: 'one.key' holds no certificate in PEM form"),
        ({"ca_file": "damaged.pem"}, "tls.ca_file: 'damaged.pem' holds a certificate that cannot be read"),
        ({"ca_file": "cut.pem"}, "tls.ca_file: 'cut.pem' holds a certificate that cannot be read"),
        ({"ca_file": "a\0b"}, "tls.ca_file: 'a\\x00b' cannot be read: embedded null byte"),
        ({"cert_file": "none.pem"}, "tls.cert_file: 'none.pem' cannot be read: No such file or directory"),
        ({"cert_file": "text.pem"}, "tls.cert_file: 'text.pem' holds no certificate in PEM form"),
        ({"cert_file": "one.pem"}, "tls.cert_file: 'one.pem' holds no private key in PEM form"),
        (
            {"cert_file": "one.pem", "key_file": "none.key"},
            "tls.key_file: 'none.key' cannot be read: No such file or directory",
        ),
        (
            {"cert_file": "one.pem", "key_file": "two.pem"},
            "tls.key_file: 'two.pem' holds no private key in PEM form",
        ),
        (
            {"cert_file": "one.pem", "key_file": "two.key"},
            "tls.key_file: the key in 'two.key' does not fit the certificate in 'one.pem'",
        ),
        (
            {"cert_file": "one.pem", "key_file": "encrypted.key"},
            "tls.key_file: the key in 'encrypted.key' is encrypted; use one without a passphrase",
        ),
        ({"cert_file": "damaged.pem", "key_file": "one.key"}, "tls.key_file: the key in 'one.key' cannot be used"),
        ({"key_file": "one.key"}, "key_file belongs to cert_file, which is missing"),
        ({"ca_fil": "root.pem"}, "unknown setting 'backends.m.tls.ca_fil'; did you mean 'ca_file'?"),
    ],
)
def test_wrong_files_are_named_and_not_shown(
    tls: dict[str, Json], message: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    with pytest.raises(SettingsError) as caught:
        built(tls)
    assert message in caught.value.message
    assert "canary" not in caught.value.message and "BEGIN" not in caught.value.message


@pytest.mark.parametrize("base_url", ["http://host", "demo:chat"])
def test_files_without_tls_are_refused(base_url: str, ca_file: str) -> None:
    with pytest.raises(SettingsError, match=r"backends\.m\.tls: base_url must begin with https://"):
        built({"ca_file": ca_file}, base_url)
