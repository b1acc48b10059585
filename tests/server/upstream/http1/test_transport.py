"""Tests on real sockets the backend request, the response, the kept connections, and the error of each fault."""

import asyncio
import contextlib
import gc
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import BackendError, BackendTruncated
from gateway.server.upstream.http import connect as connect
from gateway.server.upstream.http1 import backend_connection as connection
from gateway.server.upstream.http1 import pool
from gateway.server.upstream.http1.response_decoder import ResponseDecoder
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, Script, answer, chunk, faulty_backend
from tests.server.upstream.transport_client import BODY, TransportClient, client_of, everything

OK: Final = b"HTTP/1.1 200 OK\r\n"
WHOLE: Final = answer("200 OK", b"abc")
CERTIFICATE: Final = Path(__file__).parent / "localhost.pem"


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


@asynccontextmanager
async def talking(script: Script, most: int = 2**30) -> AsyncIterator[tuple[TransportClient, FaultyBackend, list[int]]]:
    """A client, its backend, and for each request the number of its connection."""
    connections: list[Connection] = []
    numbers: list[int] = []

    async def counted(connection: Connection) -> None:
        if connection not in connections:
            connections.append(connection)
        numbers.append(connections.index(connection))
        await script(connection)

    async with faulty_backend(counted) as backend, client_of(backend.base_url, most) as client:
        yield client, backend, numbers


def reset(connection: Connection) -> None:
    """Close with a real RST, also when everything has been read."""
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.reset()


@asynccontextmanager
async def serving(
    play: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    sock: socket.socket | None = None,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """The port of a server that plays this on every connection."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await play(reader, writer)

    server = await asyncio.start_server(serve, sock=sock or socket.create_server(("127.0.0.1", 0)), ssl=context)
    try:
        yield port_of(server.sockets[0])
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)


def says(*pieces: bytes, then: Callable[[Connection], None] | None = None) -> Script:
    """A backend that sends these pieces, a moment apart, and then closes or resets."""

    async def script(connection: Connection) -> None:
        for piece in pieces:
            await connection.send(piece)
            await asyncio.sleep(0.01)
        if then is not None:
            then(connection)

    return script


async def test_the_request_and_its_answer() -> None:
    async with talking(says(answer("200 OK", b"abc", b"X-One: 1"))) as (client, backend, _):
        given = await client.send(headers={"Content-Type": "text/plain"})
        assert (given.status, given.headers) == (200, {"content-length": "3", "x-one": "1"})
        assert (await given.read(), await given.read(), await given.read()) == (b"abc", b"", b"")
        given.close()
        ((head, body),) = backend.seen
        *lines, _, _ = head.decode().split("\r\n")
        assert lines[:2] == ["POST /path HTTP/1.1", f"host: 127.0.0.1:{backend.port}"]
        assert lines[2].startswith("user-agent: dragoman/")
        assert lines[3:] == ["accept-encoding: identity", "content-type: text/plain", "content-length: 19"]
        assert body == BODY


@pytest.mark.parametrize(
    "script",
    [
        says(WHOLE),
        says(HEAD + chunk(b"a"), chunk(b"bc") + END),
        says(b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE),
        says(b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\nabc"),
    ],
)
async def test_a_sound_connection_is_used_again(script: Script) -> None:
    async with talking(script) as (client, _, numbers):
        assert [await client.ask() for _ in range(3)] == [b"abc"] * 3
        assert (numbers, client.tries) == ([0, 0, 0], 3)


@pytest.mark.parametrize(
    ("script", "headers"),
    [
        (says(OK + b"connection: close\r\ncontent-length: 3\r\n\r\nabc"), {}),
        (says(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc"), {}),
        (says(OK + b"\r\nab", b"c", then=Connection.close), {}),
        (says(WHOLE, then=Connection.close), {}),
        (says(WHOLE + b"surplus"), {}),
        (says(WHOLE, b"surplus"), {}),
        (says(WHOLE + WHOLE), {}),
        (says(answer("200 OK", b"abc", b"keep-alive: timeout=1, max=9")), {}),
        (says(WHOLE), {"connection": "close"}),
    ],
)
async def test_a_doubtful_connection_is_not(script: Script, headers: Mapping[str, str]) -> None:
    async with talking(script) as (client, _, numbers):
        for _ in range(2):
            assert await client.ask(headers=headers) == b"abc"
            await asyncio.sleep(0.03)
        assert (numbers, client.tries) == ([0, 1], 2)


async def test_the_end_of_a_kept_connection_is_seen_before_the_loop_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEEP_ALIVE_BACKOFF_S", 0)

    async def script(connection: Connection) -> None:
        connection.writer.write(HEAD + chunk(b"abc") + END)
        connection.close()

    async with talking(script) as (client, _, numbers):
        for _ in range(100):
            assert await client.ask() == b"abc"
        assert client.tries == len(set(numbers)) == 100


@pytest.mark.parametrize("promise", [(), (b"keep-alive: timeout=5, max=100",)])
async def test_who_hangs_up_at_once_is_not_believed_for_a_while(promise: tuple[bytes, ...]) -> None:
    hasty = says(answer("200 OK", b"abc", *promise), then=Connection.close)
    async with talking(hasty) as (client, backend, numbers):
        await client.ask()
        await backend.closed.wait()
        await asyncio.sleep(0.02)
        for _ in range(5):
            given = await client.send()
            await everything(given)
            given.close()
        assert numbers == [0, 1, 2, 3, 4, 5]


async def test_who_hangs_up_under_a_request_is_not_believed_either() -> None:
    async def script(connection: Connection) -> None:
        if connection.writer in served:
            reset(connection)
        else:
            served.append(connection.writer)
            await connection.send(WHOLE)

    served: list[asyncio.StreamWriter] = []
    async with talking(script) as (client, _, numbers):
        assert await client.ask() == b"abc"
        with pytest.raises(BackendError):
            await client.ask()
        assert [await client.ask() for _ in range(3)] == [b"abc"] * 3
        assert numbers == [0, 0, 1, 2, 3]


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEEP_S", 0.1)
    monkeypatch.setattr(pool, "TICK_S", 0.05)
    async with talking(says(WHOLE)) as (client, backend, numbers):
        await asyncio.gather(client.ask(), client.ask())
        async with asyncio.timeout(5):
            await backend.closed.wait()
        # The other was perhaps given back a little later, and is closed at the next look.
        await asyncio.sleep(2 * pool.TICK_S)
        assert await client.ask() == b"abc"
        assert sorted(numbers) == [0, 1, 2]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (says(then=Connection.close), "upstream_connection_error"),
        (says(then=reset), "upstream_connection_error"),
        (says(OK + b"x: y", then=Connection.close), "upstream_connection_error"),
        (says(OK, then=reset), "upstream_connection_error"),
        (says(b"what is this\r\n\r\n"), "upstream_protocol_error"),
        (says(b"HTTP/2.0 200 OK\r\n\r\n"), "upstream_protocol_error"),
        (says(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"), "upstream_protocol_error"),
        (says(OK + b"x: ", *[b"y" * 8192] * 9), "upstream_protocol_error"),
        (says(OK + b"x: y\r\n" * 129 + b"\r\n"), "upstream_protocol_error"),
        (says(OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"), "upstream_protocol_error"),
        (says(OK + b"content-encoding: br\r\ncontent-length: 3\r\n\r\nabc"), "upstream_invalid_response"),
        (says(OK + b"content-encoding: gzip, br\r\ncontent-length: 3\r\n\r\nabc"), "upstream_invalid_response"),
        (says(answer("302 Found", b"", b"location: http://127.0.0.1:1/")), "upstream_redirect"),
    ],
)
async def test_faults_before_the_body(script: Script, code: str) -> None:
    async with talking(script) as (client, backend, numbers):
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, numbers, client.tries) == (code, [0], 1)
        async with asyncio.timeout(5):
            await backend.closed.wait()


@pytest.mark.parametrize(
    "script",
    [
        says(OK + b"content-length: 9\r\n\r\nabc", then=Connection.close),
        says(HEAD + chunk(b"abc"), then=Connection.close),
        says(HEAD + chunk(b"abc") + b"0\r\n", then=Connection.close),
        says(HEAD + chunk(b"abc") + b"zz\r\n"),
        says(HEAD, chunk(b"abc"), b"zz\r\n"),
        says(HEAD + chunk(b"abc") + b"0\r\nx: ", *[b"y" * 8192] * 9),
        says(HEAD + chunk(b"abc"), then=reset),
        says(OK + b"\r\nabc", then=reset),
    ],
)
async def test_what_came_before_the_body_broke_is_read_first(script: Script) -> None:
    async with talking(script) as (client, _, _):
        given = await client.send()
        seen = b""
        with pytest.raises(BackendTruncated):
            async with asyncio.timeout(2):
                while piece := await given.read():
                    seen += piece
        assert seen == b"abc"
        with pytest.raises(BackendTruncated):
            await given.read()
        given.close()


async def test_an_error_keeps_what_came_of_its_body() -> None:
    broken = b"HTTP/1.1 429 Slow Down\r\ncontent-length: 99\r\n\r\nslow"
    async with talking(says(broken, then=Connection.close)) as (client, _, _):
        given = await client.send()
        assert (given.status, await given.read_error()) == (429, b"slow")
        given.close()


@pytest.mark.parametrize("head", [OK + b"content-length: 300000\r\n\r\n", OK + b"\r\n"])
async def test_an_answer_that_is_too_large_is_cut_off(head: bytes) -> None:
    async with talking(says(head + b"x" * 300_000, then=Connection.close), most=1000) as (client, _, _):
        given = await client.send()
        with pytest.raises(BackendError) as caught:
            await everything(given)
        assert caught.value.code == "upstream_response_too_large"
        given.close()


async def test_nobody_reads_and_the_backend_has_to_wait() -> None:
    sent = 0
    piece = b"0123456789abcdef" * 4096

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.send(HEAD)
        while sent < 40 * 2**20:
            await connection.send(chunk(piece))
            sent += len(piece)
        await connection.send(END)

    async with talking(script) as (client, _, _):
        given = await client.send()
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        # What the kernel holds on both sides, and a little of ours.
        assert sent < 16 * 2**20
        assert await everything(given) == piece * (40 * 2**20 // len(piece))
        given.close()
        await asyncio.sleep(0)


async def test_large_requests_arrive_and_may_be_refused_midway() -> None:
    large = bytes(range(256)) * 2**14

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer("413 Content Too Large", b"no"))
        await reader.read(2**30)
        writer.close()

    async with talking(says(WHOLE)) as (client, backend, numbers):
        assert [await client.ask(large) for _ in range(2)] == [b"abc"] * 2
        assert [body for _, body in backend.seen] == [large] * 2
        assert numbers == [0, 0]
    async with serving(refuse) as port, client_of(f"http://127.0.0.1:{port}") as client:
        given = await client.send(large)
        assert (given.status, await given.read_error()) == (413, b"no")
        given.close()


async def test_a_kept_connection_that_dies_under_a_request_is_replaced_if_it_was_not_sent_in_full() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        first = len(connections) == 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            if first and b"length: 3\r\n" not in head:
                writer.transport.abort()
                return
            await reader.readexactly(3 if first else len(large))
            writer.write(WHOLE)

    connections: list[asyncio.StreamWriter] = []
    large = b"x" * 2**25
    async with serving(script) as port, client_of(f"http://127.0.0.1:{port}") as client:
        assert await client.ask(b"one") == b"abc"
        assert await client.ask(large) == b"abc"
        assert (client.tries, len(connections)) == (3, 2)


async def test_a_request_that_may_have_run_is_not_sent_again() -> None:
    async def script(connection: Connection) -> None:
        if len(backend.seen) == 1:
            await connection.send(WHOLE)
        else:
            reset(connection)

    async with talking(script) as (client, backend, numbers):
        assert await client.ask() == b"abc"
        with pytest.raises(BackendError) as caught:
            await client.ask()
        assert (caught.value.code, client.tries, numbers) == ("upstream_connection_error", 2, [0, 0])


def _closed_port() -> socket.socket:
    """A port that refuses until it listens."""
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    return closed


async def test_a_refused_connection_is_tried_twice() -> None:
    with _closed_port() as closed:
        async with client_of(f"http://127.0.0.1:{port_of(closed)}") as client:
            with pytest.raises(BackendError) as caught:
                await client.send()
            assert (caught.value.code, client.tries) == ("upstream_connection_error", 2)
            for connect, again in ((5.0, False), (0.05, True)):
                client.tries = 0
                with pytest.raises(BackendError):
                    await client.send(connect=connect, again=again)
                assert client.tries == 1


async def test_a_backend_that_starts_meanwhile_is_reached() -> None:
    with _closed_port() as closed:
        async with client_of(f"http://127.0.0.1:{port_of(closed)}") as client:
            asked = asyncio.create_task(client.ask())
            await asyncio.sleep(0.03)
            backend = FaultyBackend(says(WHOLE))
            async with serving(backend.serve, closed):
                assert (await asked, client.tries) == (b"abc", 2)


async def test_a_name_that_nobody_knows() -> None:
    async with client_of("http://nobody.invalid:1") as client:
        with pytest.raises(BackendError) as caught:
            await client.send(connect=1)
        assert caught.value.code == "upstream_connection_error"


async def test_a_name_with_several_addresses_leads_to_the_one_that_listens() -> None:
    async with talking(says(WHOLE)) as (client, backend, _):
        client.base_url = f"http://localhost:{backend.port}"
        assert await client.ask() == b"abc"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_connecting_ends_with_its_deadline(scheme: str) -> None:
    # Nobody accepts: the second connection waits in vain, and the first for its handshake.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) if scheme == "http" else socket.socket():
            async with client_of(f"{scheme}://127.0.0.1:{port}") as client:
                began = time.monotonic()
                with pytest.raises(BackendError) as caught:
                    await client.send(connect=0.2)
                assert (caught.value.code, client.tries) == ("upstream_connection_error", 1)
                assert "in time" in caught.value.message
                assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "script", [says(), says(OK), says(HEAD), says(HEAD + chunk(b"abc"))], ids=["silence", "half", "head", "body"]
)
async def test_who_is_cancelled_lets_go(script: Script) -> None:
    async with talking(script) as (client, backend, _):
        asked = asyncio.create_task(client.ask())
        await backend.requested.wait()
        await asyncio.sleep(0.02)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with asyncio.timeout(5):
            await backend.closed.wait()


async def test_a_backend_that_ends_its_answer_while_it_takes_the_request() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"\r\nabc")
        writer.write_eof()
        await asyncio.sleep(0.05)
        await reader.readexactly(len(large))
        read.set()

    large, read = b"x" * 8_000_000, asyncio.Event()
    async with serving(play) as port, client_of(f"http://127.0.0.1:{port}") as client:
        assert await client.ask(large) == b"abc"
        await read.wait()


async def test_the_end_of_the_transport_is_the_end_of_all_its_connections() -> None:
    async with faulty_backend(says(OK + b"\r\nabc")) as backend:
        async with client_of(backend.base_url) as client:
            given = await client.send()
            assert await given.read() == b"abc"
        with pytest.raises(BackendTruncated):
            await given.read()
        given.close()
        await backend.closed.wait()


async def test_nothing_of_a_connection_waits_for_the_collector() -> None:
    async with talking(says(OK + b"connection: close\r\ncontent-length: 3\r\n\r\nabc")) as (client, _, _):
        await client.ask()
        await asyncio.sleep(0.01)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                assert await client.ask() == b"abc"
                await asyncio.sleep(0.01)
            left = [one for one in gc.get_objects() if isinstance(one, connection.BackendConnection | ResponseDecoder)]
        finally:
            gc.enable()
        assert left == []


async def test_a_header_that_would_end_its_line_is_never_sent() -> None:
    async with talking(says(WHOLE)) as (client, _, numbers):
        with pytest.raises(ValueError, match="x-one"):
            await client.send(headers={"x-one": "a\r\nx-two: b"})
        assert numbers == []


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
async def test_tls() -> None:
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
        await asyncio.wait_for(backend.closed.wait(), 2)


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


async def test_who_speaks_unasked_is_no_http_server() -> None:
    async with talking(says(b"SSH-2.0-x\r\n")) as (client, backend, _):
        backend.speaks_first = True
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == ("upstream_protocol_error", 1)


async def _untrusted(base_url: str) -> None:
    async with client_of(base_url) as client:
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == ("upstream_tls_error", 1)
        assert caught.value.headers == {"x-should-retry": "false"}


def test_the_system_is_trusted_and_no_other_protocol_is_offered() -> None:
    context = connect.tls_context("http/1.1")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert connect.tls_context("http/1.1") is context
