"""Endless or slow requests: the cost of a connection is limited before its deadline."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.hostile.attacked_gateway import AttackedGateway, attacked_gateway, request
from tests.hostile.heads import CHUNKED, GET, HOST, KEY, POST
from tests.hostile.wire import answers, said

PIECE: Final = b"y" * 65536
# A refused body is read on for a second, as fast as the machine can, so that the client sees the answer.
ENOUGH: Final = 64 * 2**20

# What is sent first, and what is then sent again and again.
ENDLESS: Final[dict[str, tuple[bytes, bytes]]] = {
    "a header's value": (GET + HOST + KEY + b"x: ", PIECE),
    "a header's name": (GET + HOST + KEY + b"x", PIECE),
    "headers": (GET + HOST + KEY, b"x: y\r\n" * 1000),
    "an address": (b"GET /", PIECE),
    "a method": (b"", PIECE),
    "empty lines": (b"", b"\r\n" * 30_000),
    "a chunk's extension": (POST + CHUNKED + b"\r\n2;x=", PIECE),
    "a trailer's value": (POST + CHUNKED + b"\r\n0\r\nx: ", PIECE),
    "trailers": (POST + CHUNKED + b"\r\n0\r\n", b"x: y\r\n" * 1000),
    "chunks of one byte": (POST + CHUNKED + b"\r\n", b"1\r\n \r\n" * 10_000),
}


@pytest.fixture
async def attacked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AttackedGateway]:
    async with attacked_gateway(monkeypatch) as opened:
        yield opened


async def _pour(attacked: AttackedGateway, first: bytes, again: bytes) -> int:
    """How many bytes the gateway took before it hung up."""
    _, writer = await asyncio.open_connection(attacked.gateway.host, attacked.gateway.port)
    sent = 0
    with contextlib.suppress(ConnectionError):
        writer.write(first)
        while sent < ENOUGH:
            writer.write(again)
            await writer.drain()
            sent += len(again)
    writer.transport.abort()
    return sent


@pytest.mark.parametrize("name", ENDLESS)
async def test_what_never_ends_is_cut_off_early(attacked: AttackedGateway, name: str) -> None:
    # What is already in the kernel's buffers counts as sent too; hence the room.
    assert await _pour(attacked, *ENDLESS[name]) < ENOUGH
    assert await attacked.health() == {}


async def test_requests_in_one_breath_are_answered_in_order_until_the_first_bad_one(attacked: AttackedGateway) -> None:
    good = GET + HOST + KEY + b"\r\n"
    wrong = GET + HOST + b"\r\n"
    found = answers(await said(attacked.gateway, good + wrong + good + GET + b"no colon\r\n\r\n" + good))
    assert [answer.status for answer in found][:3] in ([200, 401, 200], [400])
    assert found[-1].status == 400 or len(found) == 3
    assert await attacked.health() == {}


async def test_a_head_that_trickles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async with attacked_gateway(monkeypatch, header_timeout_s=2) as attacked:
        begun = time.monotonic()
        slow = await asyncio.gather(*(said(attacked.gateway, request()[:size]) for size in range(1, 90, 3)))
        assert set(slow) == {b""}
        assert time.monotonic() - begun < 25
        assert await attacked.health() == {}


async def test_many_who_say_nothing_hinder_nobody(attacked: AttackedGateway) -> None:
    silent = [await asyncio.open_connection(attacked.gateway.host, attacked.gateway.port) for _ in range(200)]
    assert await attacked.health() == {}
    for _, writer in silent:
        writer.close()
