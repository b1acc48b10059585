"""Tests on real sockets whom the gateway trusts, and what goes through TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.core.errors import BackendError, BackendTruncated
from gateway.server.upstream.http import connect
from gateway.server.upstream.http.tls import tls_context
from gateway.server.upstream.http1 import pool
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, Script, chunk
from tests.server.upstream.http1.peer import CERTIFICATE, WHOLE, says, serving
from tests.server.upstream.transport_client import client_of


@asynccontextmanager
async def secure(script: Script) -> AsyncIterator[FaultyBackend]:
    """A backend behind TLS, whose certificate is for localhost."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    context.set_alpn_protocols(["h2", "http/1.1"])
    backend = FaultyBackend(script)
    async with serving(backend.serve, context=context) as port:
        backend.port = port
        yield backend


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the certificate."""
    context = ssl.create_default_context(cafile=CERTIFICATE)
    context.set_alpn_protocols(["http/1.1"])
    monkeypatch.setattr(connect, "tls_context", lambda _: context)


@pytest.mark.usefixtures("trusted")
async def test_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    # Within the limit of the wait below, no kept connection is closed for its age.
    monkeypatch.setattr(pool, "KEEP_S", 600)
    protocols = []

    async def script(connection: Connection) -> None:
        protocols.append(connection.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await connection.send(HEAD, *[chunk(b"x" * 5000)] * 100, END)

    large = b"y" * 2**21
    async with secure(script) as backend, client_of(f"https://localhost:{backend.port}") as client:
        assert [len(await client.ask(large)) for _ in range(3)] == [500_000] * 3
        assert [body for _, body in backend.seen] == [large] * 3
        assert protocols == ["http/1.1"] * 3
        given = await client.send()
        given.close()
        await asyncio.wait_for(backend.closed.wait(), 20)


@pytest.mark.usefixtures("trusted")
async def test_a_body_that_breaks_off_behind_tls() -> None:
    cut = says(HEAD + chunk(b"abc"), then=Connection.reset)
    async with secure(cut) as backend, client_of(f"https://localhost:{backend.port}") as client:
        with pytest.raises(BackendTruncated):
            await client.ask()


async def test_nobody_is_trusted_without_a_certificate_for_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with secure(says(WHOLE)) as backend:
        await _untrusted(f"https://localhost:{backend.port}")
        context = ssl.create_default_context(cafile=CERTIFICATE)
        monkeypatch.setattr(connect, "tls_context", lambda _: context)
        await _untrusted(f"https://127.0.0.1:{backend.port}")
        assert backend.seen == []


async def test_a_handshake_that_is_cut_is_no_matter_of_trust() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    async with serving(cut) as port, client_of(f"https://127.0.0.1:{port}") as client:
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == ("upstream_connection_error", 1)


async def _untrusted(base_url: str) -> None:
    async with client_of(base_url) as client:
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == ("upstream_tls_error", 1)
        assert caught.value.headers == {"x-should-retry": "false"}


def test_the_system_is_trusted_and_no_other_protocol_is_offered() -> None:
    context = tls_context("http/1.1")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert tls_context("http/1.1") is context
