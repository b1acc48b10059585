"""Tests on real sockets how HTTP/2 is negotiated."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import BackendError
from gateway.server.upstream.http import connect
from tests.server.upstream.http2.peer import answers, asking, serving

CERTIFICATE: Final = Path(__file__).parent.parent / "http1" / "localhost.pem"


def contexts(alpn: list[str]) -> tuple[ssl.SSLContext, Callable[[str], ssl.SSLContext]]:
    """The backend's side of TLS, and the gateway's, which trusts the certificate of the test."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(CERTIFICATE)
    server.set_alpn_protocols(alpn)

    def context(wanted: str) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=CERTIFICATE)
        made.set_alpn_protocols([wanted])
        return made

    return server, context


async def test_tls_negotiates_http2(monkeypatch: pytest.MonkeyPatch) -> None:
    server, context = contexts(["http/1.1", "h2"])
    monkeypatch.setattr(connect, "tls_context", context)
    async with serving(answers, server) as (port, _), asking(f"https://localhost:{port}") as client:
        assert await client.ask() == b"abc"


async def test_a_backend_without_http2_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    server, context = contexts(["http/1.1"])
    monkeypatch.setattr(connect, "tls_context", context)
    async with serving(answers, server) as (port, _), asking(f"https://localhost:{port}") as client:
        with pytest.raises(BackendError) as caught:
            await client.ask()
        assert (caught.value.code, client.tries) == ("upstream_protocol_error", 1)
        assert caught.value.message == "The backend does not speak HTTP/2."
