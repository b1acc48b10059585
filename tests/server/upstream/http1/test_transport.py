"""Tests on real sockets a request and its response: who waits for whom, and what is let go of at the end."""

import asyncio
import gc

import pytest

from gateway.core.errors import BackendTruncated
from gateway.server.upstream.http1 import backend_connection as connection
from gateway.server.upstream.http1.response_decoder import ResponseDecoder
from gateway.testing.faulty import END, HEAD, Connection, Script, answer, chunk, faulty_backend
from tests.server.upstream.http1.peer import OK, WHOLE, says, serving, talking
from tests.server.upstream.transport_client import BODY, client_of, everything


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


@pytest.mark.full
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
