"""Tests on raw sockets what the demo's connection adds to uvicorn's."""

import asyncio
import gc
import struct
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET
from urllib.parse import urlsplit

import pytest

from gateway.demo.player.connection import DemoConnection
from gateway.demo.serve import DemoBackend, serve_demo

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(backend: DemoBackend) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(backend.base_url).port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def reset_at_the_end(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))


def head(size: int) -> bytes:
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size


def question(marker: str, padding: int = 0) -> bytes:
    text = b"hi [[demo:%s]]" % marker.encode()
    messages = b'[{"role":"system","content":"%s"},{"role":"user","content":"%s"}]' % (b"x" * padding, text)
    body = b'{"model":"m","stream":true,"messages":%s}' % messages
    return head(len(body)) + body


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(8):
        while not seen():  # noqa: ASYNC110 (what is waited for sets no event)
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("padding", [0, 100_000, 1_000_000])
async def test_a_silent_answer_ends_with_its_client(padding: int, reset: bool) -> None:
    async with serve_demo("chat") as backend, connected(backend) as (reader, writer):
        writer.write(question("stall_first", padding))
        await reader.readuntil(b"\r\n\r\n")
        if reset:
            reset_at_the_end(writer)
        writer.transport.abort()
        await until(lambda: backend.aborted == 1)
        assert backend.active == 0


async def test_a_client_that_leaves_in_its_body_is_counted() -> None:
    async with serve_demo("chat") as backend:
        async with connected(backend) as (_, writer):
            writer.write(head(100) + b"{")
            await until(lambda: backend.active == 1)
        await until(lambda: backend.aborted == 1)
        assert backend.requests == ()


async def test_a_client_that_does_not_wait_for_a_word_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with serve_demo("chat") as backend:
        async with connected(backend) as (_, writer):
            writer.write(question("stall_headers"))
        await until(lambda: backend.aborted == 1)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("how", ["fin", "reset"])
async def test_a_connection_ends_as_it_was_asked_to(how: str) -> None:
    async with serve_demo("chat") as backend, connected(backend) as (reader, writer):
        writer.write(question(f"disconnect_first how={how}"))
        await reader.readuntil(b"\r\n\r\n")
        if how == "fin":
            assert not await reader.read()
        else:
            with pytest.raises(ConnectionResetError):
                await reader.read()
        assert backend.aborted == 0


async def test_answers_follow_each_other_on_one_connection() -> None:
    async with serve_demo("chat") as backend, connected(backend) as (reader, writer):
        for marker in ("no_done", "status code=429", "truncated"):
            writer.write(question(marker))
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b"transfer-encoding: chunked" in answer and b"connection: close" not in answer
            await reader.readuntil(b"0\r\n\r\n")
        assert len(backend.requests) == 3


@pytest.mark.full
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(("marker", "end"), [("no_done", b"0\r\n\r\n"), ("held_open", b"[DONE]")])
async def test_nothing_of_a_connection_is_left_to_the_collector(marker: str, end: bytes, reset: bool) -> None:
    gc.disable()
    try:
        async with serve_demo("chat") as backend:
            async with connected(backend) as (reader, writer):
                writer.write(question(marker))
                await reader.readuntil(end)
                if reset:
                    reset_at_the_end(writer)
                (served,) = [weakref.ref(found) for found in gc.get_objects() if type(found) is DemoConnection]
            await until(lambda: served() is None)
    finally:
        gc.enable()
