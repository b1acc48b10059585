"""What a connection to a backend's host shows, over real sockets."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from gateway.diagnostics.doctor.reach_probes import SOON_DAYS
from gateway.server.doctor.connection import reach
from gateway.server.upstream.http.origin import Origin
from gateway.settings import TlsSettings
from tests.paths import ROOT

# Valid for a hundred years.
CERTIFICATE: Final = ROOT / "tests" / "server" / "upstream" / "http1" / "localhost.pem"
LIMIT_S: Final = 10


@asynccontextmanager
async def listening(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """The port of a server that says nothing."""

    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0, ssl=context) as server:
        port: int = server.sockets[0].getsockname()[1]
        yield port


def secured() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_a_host_is_reached_at_its_address() -> None:
    async with listening(None) as port:
        reached = await reach(Origin("127.0.0.1", port, tls=False), LIMIT_S)
    assert [(one.family, one.address, one.fault) for one in reached.addresses] == [("IPv4", "127.0.0.1", "")]
    assert (reached.fault, reached.tls, reached.expires_days) == ("", "", None)


async def test_a_port_that_is_closed_is_the_fault_of_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        reached = await reach(Origin("127.0.0.1", taken.getsockname()[1], tls=True), LIMIT_S)
    assert [bool(one.fault) for one in reached.addresses] == [True]
    assert (reached.fault, reached.tls) == ("", "")


async def test_a_name_without_an_address_says_why() -> None:
    reached = await reach(Origin("host.invalid", 443, tls=True), LIMIT_S)
    assert (reached.addresses, bool(reached.fault)) == ((), True)


async def test_a_certificate_that_is_trusted_tells_how_long_it_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = secured(), ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr(ssl, "create_default_context", lambda: client)
    async with listening(server) as port:
        reached = await reach(Origin("localhost", port, tls=True), LIMIT_S)
    assert (reached.fault, reached.tls) == ("", "TLSv1.3")
    assert reached.expires_days is not None and reached.expires_days > SOON_DAYS


async def test_the_files_of_the_entry_are_used() -> None:
    files = TlsSettings(ca_file=str(CERTIFICATE))
    async with listening(secured()) as port:
        reached = await reach(Origin("localhost", port, tls=True, files=files), LIMIT_S)
    assert (reached.fault, reached.tls) == ("", "TLSv1.3")


async def test_a_certificate_that_nobody_trusts_is_named() -> None:
    async with listening(secured()) as port:
        reached = await reach(Origin("localhost", port, tls=True), LIMIT_S)
    assert "self" in reached.fault and "signed" in reached.fault
    assert reached.tls == ""
