"""Tests on real sockets the error of each fault of a backend, before the head and in the body."""

import asyncio

import pytest

from gateway.core.errors import BackendError, BackendTruncated
from gateway.testing.faulty import HEAD, Connection, Script, answer, chunk
from tests.server.upstream.http1.peer import OK, reset, says, talking
from tests.server.upstream.transport_client import everything


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
            async with asyncio.timeout(20):
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


async def test_who_speaks_unasked_is_no_http_server() -> None:
    async with talking(says(b"SSH-2.0-x\r\n")) as (client, backend, _):
        backend.speaks_first = True
        with pytest.raises(BackendError) as caught:
            await client.send()
        assert (caught.value.code, client.tries) == ("upstream_protocol_error", 1)
