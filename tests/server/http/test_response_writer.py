"""Tests the bytes of a response on the connection, and values that would break its framing."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from starlette.types import Message
from uvicorn.server import ServerState

from gateway.server.http.flow_control import FlowControl
from gateway.server.http.request_body import RequestBody
from gateway.server.http.response_writer import ResponseWriter
from tests.server.conftest import Start
from tests.server.http.test_protocol import answers, well


class Written:
    """A connection that keeps what is written to it."""

    def __init__(self, method: str = "GET", version: str = "1.1", keep_alive: bool = True) -> None:
        self.bytes = b""
        self.closed = False
        self.answers = 0
        transport = cast(asyncio.Transport, self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server_state = ServerState()
        self.server_state.default_headers = [(b"date", b"today")]
        self.on_lost: Callable[[], None] | None = None
        self.request_body = RequestBody(transport, self.flow, expects_continue=False)
        self.writer = ResponseWriter(self, self.request_body, method, version, keep_alive)

    def write(self, data: bytes) -> None:
        self.bytes += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def answered(self) -> None:
        self.answers += 1

    def cut(self) -> None:
        self.closed = True

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self.writer.send(message)


def head(status: int = 200, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def test_an_answer_of_known_length() -> None:
    written = Written()
    await written.send(head(200, (b"content-length", b"4")), body(b"ab", more=True), body(b"cd"))
    assert written.bytes == b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 4\r\n\r\nabcd"
    assert written.request_body.over and written.answers == 1
    assert not written.closed


async def test_an_answer_of_unknown_length_is_chunked() -> None:
    written = Written()
    await written.send(head(), body(b"", more=True), body(b"ab", more=True), body(b""))
    assert written.bytes.endswith(b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")


async def test_an_older_client_is_sent_no_chunks() -> None:
    written = Written(version="1.0", keep_alive=False)
    await written.send(head(), body(b"ab", more=True), body(b"cd"))
    assert written.bytes.endswith(b"connection: close\r\n\r\nabcd")
    assert written.closed


@pytest.mark.parametrize(("method", "status", "data"), [("HEAD", 200, b"abcd"), ("GET", 204, b""), ("GET", 304, b"")])
async def test_an_answer_without_a_body(method: str, status: int, data: bytes) -> None:
    written = Written(method)
    await written.send(head(status, (b"content-length", b"4")), body(data))
    assert written.bytes.endswith(b"content-length: 4\r\n\r\n")


async def test_an_answer_that_closes_says_so_once() -> None:
    written = Written()
    await written.send(head(200, (b"connection", b"close"), (b"content-length", b"0")), body(b""))
    assert written.bytes.count(b"connection: close") == 1
    assert written.closed


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\r\n\r\nHTTP/1.1 200 OK"])
async def test_no_value_ends_its_line(value: bytes) -> None:
    written = Written()
    with pytest.raises(RuntimeError, match="line break"):
        await written.send(head(200, (b"x", value)))
    assert written.bytes == b""
    assert not written.writer.started


@pytest.mark.parametrize("pieces", [(b"abc",), (b"abcde",), (b"abc", b"de")])
async def test_a_body_is_as_long_as_its_head_says(pieces: tuple[bytes, ...]) -> None:
    written = Written()
    messages = [body(piece, more=piece is not pieces[-1]) for piece in pieces]
    with pytest.raises(RuntimeError, match="does not have the length"):
        await written.send(head(200, (b"content-length", b"4")), *messages)
    assert not written.request_body.over and written.answers == 0


async def test_a_client_that_has_left_is_sent_nothing() -> None:
    written = Written()
    written.request_body.end()
    await written.send(head(), body(b"ab"))
    assert written.bytes == b""


async def test_every_route_answers_this_way(start: Start) -> None:
    gateway, _ = await start(well)
    asked = b"HEAD /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    assert (await answers(gateway, asked)).endswith(b"\r\n\r\n")
    older = await answers(gateway, b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
    assert b"connection: close" in older
    assert older.endswith(b'{"status":"ok"}')
