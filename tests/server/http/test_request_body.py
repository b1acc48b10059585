"""Tests a body in pieces, and the task that waits for it."""

import asyncio
from typing import cast

import pytest
from starlette.types import Message

from gateway.server.http.flow_control import HIGH_WATER, FlowControl
from gateway.server.http.request_body import RequestBody


class Line:
    """A transport that keeps what is written, and whether it reads."""

    def __init__(self) -> None:
        self.bytes = b""
        self.reads = True

    def write(self, data: bytes) -> None:
        self.bytes += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


def request_body(line: Line, expects_continue: bool = False) -> RequestBody:
    transport = cast(asyncio.Transport, line)
    return RequestBody(transport, FlowControl(transport), expects_continue)


def piece(body: bytes, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_what_is_here_is_given_in_one_piece() -> None:
    body = request_body(Line())
    for part in (b"ab", b"cd", b"ef"):
        body.feed(part)
    body.close()
    assert await body.receive() == piece(b"abcdef", more=False)


async def test_whoever_waits_is_given_what_comes() -> None:
    body = request_body(Line())
    for part in (b"ab", b"cd"):
        waiting = asyncio.create_task(body.receive())
        await asyncio.sleep(0)
        assert not waiting.done()
        body.feed(part)
        assert await waiting == piece(part, more=True)
    body.close()
    assert await body.receive() == piece(b"", more=False)


async def test_the_end_is_told_to_everybody_who_waits_and_to_who_comes_later() -> None:
    body = request_body(Line())
    body.close()
    await body.receive()
    waiting = [asyncio.create_task(body.receive()) for _ in range(2)]
    await asyncio.sleep(0)
    body.end()
    assert await asyncio.gather(*waiting, body.receive()) == [{"type": "http.disconnect"}] * 3


async def test_a_body_that_nobody_reads_is_not_read_on() -> None:
    line = Line()
    body = request_body(line)
    body.feed(b"x" * HIGH_WATER)
    seen = [line.reads]
    body.feed(b"x")
    seen.append(line.reads)
    assert len((await body.receive())["body"]) == HIGH_WATER + 1
    assert [*seen, line.reads] == [True, False, True]


async def test_what_comes_after_the_answer_is_not_kept() -> None:
    line = Line()
    body = request_body(line)
    body.end()
    body.feed(b"x" * 2 * HIGH_WATER)
    body.close()
    assert line.reads
    assert await body.receive() == {"type": "http.disconnect"}


@pytest.mark.parametrize("expects", [False, True])
async def test_a_client_that_waits_to_be_asked_is_asked_once(expects: bool) -> None:
    line = Line()
    body = request_body(line, expects)
    body.feed(b"ab")
    body.close()
    await body.receive()
    body.end()
    await body.receive()
    assert line.bytes == expects * b"HTTP/1.1 100 Continue\r\n\r\n"
