"""Tests on raw sockets the checks that uvicorn's fast parser lacks."""

import asyncio
import contextlib
import gc
import logging
import socket
import struct
import time
from collections import Counter
from typing import Final

import pytest

from gateway.testing.gateway import RunningGateway
from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hello", "finish"), END)


async def answers(gateway: RunningGateway, request: bytes) -> bytes:
    """Everything the gateway says to these bytes until it hangs up. Raises TimeoutError when it never does."""
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(request)
    received = b""
    async with asyncio.timeout(8):  # less than the limits of time that nothing here should wait for
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                received += piece
    writer.close()
    return received


GET: Final = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"

BAD: Final[dict[str, bytes]] = {
    "length and chunks": GET + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding and chunks": GET + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding, and chunks": GET + b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": GET + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"host: localhost\r\n\r\n",
    "a huge header": GET + b"x: " + b"y" * 70_000 + b"\r\n\r\n",
    "a huge address": b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "too many headers": GET + b"".join(b"x-%d: y\r\n" % i for i in range(200)) + b"\r\n",
    "garbage": b"\x00\x01\x02\r\n\r\n",
    "an odd version": b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_heads_get_one_400_and_are_closed(start: Start, name: str) -> None:
    gateway, _ = await start(well, header_timeout_s=60)
    received = await answers(gateway, BAD[name])
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1") == 1
    assert b'"code":"invalid_http"' in received


async def test_good_heads_pass(start: Start) -> None:
    gateway, _ = await start(well)
    many = (
        GET
        + b"".join(b"x-%d: y\r\n" % i for i in range(100))
        + b"x: "
        + b"y" * 30_000
        + b"\r\nconnection: close\r\n\r\n"
    )
    assert (await answers(gateway, many)).startswith(b"HTTP/1.1 200")
    old = b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n"
    assert (await answers(gateway, old)).startswith(b"HTTP/1.1 200")
    twice = await answers(gateway, GET + b"\r\n" + GET + b"connection: close\r\n\r\n")
    assert twice.count(b"HTTP/1.1 200") == 2


async def test_trailers_never_become_headers(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_GATEWAY_KEYS", "key")
    gateway, backend = await start(well, api_keys_env="TEST_GATEWAY_KEYS")
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nauthorization: Bearer key\r\n\r\n"
    )
    assert (await answers(gateway, request)).startswith(b"HTTP/1.1 401")
    assert not backend.seen


@pytest.mark.parametrize("sent", [b"", b"GET /hea", GET])
async def test_slow_heads_are_cut_off(start: Start, sent: bytes) -> None:
    gateway, _ = await start(well, header_timeout_s=0.3)
    begun = time.monotonic()
    await answers(gateway, sent)
    assert time.monotonic() - begun > 0.2


async def test_trickling_does_not_extend_the_deadline(start: Start) -> None:
    gateway, _ = await start(well, header_timeout_s=0.4)
    _, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(GET)
    begun = time.monotonic()
    with pytest.raises(ConnectionError):
        for _ in range(90):  # ten seconds, and less than there may be lines
            writer.write(b"x-slow: y\r\n")
            await writer.drain()
            await asyncio.sleep(0.1)
    assert time.monotonic() - begun < 8


async def test_the_head_of_a_second_request_has_its_own_deadline(start: Start) -> None:
    """Between two requests a connection may rest for longer than a head may take."""
    gateway, _ = await start(well, header_timeout_s=0.3)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    for pause in (0.01, 0.5):
        writer.write(GET + b"\r\n")
        assert b"200" in await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(15)
        await asyncio.sleep(pause)
    writer.write(GET)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()


async def test_garbage_after_a_request_does_not_spoil_its_answer(start: Start) -> None:
    async def slow(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello"))
        await asyncio.sleep(0.2)
        await connection.send(events("finish"), END)

    gateway, _ = await start(slow)
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(request)
    received = await reader.readuntil(b"Hello")
    writer.write(b"\x00garbage\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        received += await reader.read()
    writer.close()
    assert received.count(b"HTTP/1.1") == 1
    assert b"[DONE]" not in received or received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_connections_beyond_the_limit_are_told_and_closed(start: Start) -> None:
    gateway, _ = await start(well, max_connections=2)
    held = [await asyncio.open_connection(gateway.host, gateway.port) for _ in range(2)]
    await asyncio.sleep(0.05)
    refused = await answers(gateway, GET + b"\r\n")
    assert refused.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in refused and b'"code":"overloaded"' in refused
    held[0][1].close()
    await asyncio.sleep(0.05)
    assert (await answers(gateway, GET + b"connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")
    held[1][1].close()


async def test_many_who_find_no_room_are_one_line_of_the_log(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    gateway, _ = await start(well, max_connections=1)
    held = await asyncio.open_connection(gateway.host, gateway.port)
    with caplog.at_level(logging.INFO, "gateway"):
        refused = await asyncio.gather(*(answers(gateway, b"") for _ in range(50)))
    held[1].close()
    assert {answer[:12] for answer in refused} == {b"HTTP/1.1 503"}
    assert len(caplog.records) <= 3


async def test_a_client_whose_descriptor_is_kept_back_is_told_and_closed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.process.gateway_server.last_for_clients", lambda: 3)
    gateway, _ = await start(well)
    refused = await answers(gateway, GET + b"\r\n")
    assert refused.startswith(b"HTTP/1.1 503") and b'"code":"overloaded"' in refused


@pytest.mark.full
@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
async def test_a_lost_connection_leaves_nothing_to_the_collector(start: Start, resets: bool) -> None:
    gateway, _ = await start(well)
    gc.collect()
    gc.disable()
    try:
        for request in (GET + b"\r\n", POST + b"\r\n" + CHAT):
            reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
            writer.write(request)
            await reader.readuntil(b"}")
            if resets:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()
        for _ in range(500):
            if not gateway.server.server_state.connections | gateway.server.server_state.tasks:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        left = Counter(type(found).__name__ for found in gc.get_objects())
    finally:
        gc.enable()
    assert [left[name] for name in ("HttpProtocol", "RequestBody", "ResponseWriter")] == [0, 0, 0]


UPGRADE: Final = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
CHAT: Final = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
POST: Final = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n" % len(CHAT)
)


@pytest.mark.parametrize("size", [1, 50, 10_000])
async def test_a_client_that_asks_for_another_protocol_is_served_in_this_one(start: Start, size: int) -> None:
    gateway, backend = await start(well)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    sent = POST + UPGRADE + b"\r\n" + CHAT
    for _ in range(2):
        for at in range(0, len(sent), size):
            writer.write(sent[at : at + size])
            await writer.drain()
        async with asyncio.timeout(8):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
            assert b"Hello" in await reader.readexactly(int(length[16:]))
        assert head.startswith(b"HTTP/1.1 200")
    assert len(backend.seen) == 2
    writer.close()


@pytest.mark.parametrize(
    "request_head",
    [
        POST.replace(b"HTTP/1.1", b"HTTP/9.9") + UPGRADE + b"\r\n",
        POST + b"host: evil.example\r\n" + UPGRADE + b"\r\n",
        POST + b"transfer-encoding: chunked\r\n" + UPGRADE + b"\r\n",
        POST + UPGRADE + b"x: " + b"y" * 70_000 + b"\r\n\r\n",
        POST.replace(b"POST /v1", b"CONNECT /v1") + UPGRADE + b"\r\n",
        GET + UPGRADE + b"\r\n\x00\x01",
    ],
)
async def test_asking_for_another_protocol_excuses_nothing(start: Start, request_head: bytes) -> None:
    gateway, backend = await start(well)
    received = await answers(gateway, request_head + CHAT)
    assert received.startswith(b"HTTP/1.1 400") and received.count(b"HTTP/1.1") == 1
    assert not backend.seen


@pytest.mark.parametrize(("path", "module"), [("/v1/chat/completions", "endpoint"), ("/v1/explain", "dialect_routes")])
async def test_a_body_that_does_not_come_is_not_waited_for(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str, module: str
) -> None:
    monkeypatch.setattr(f"gateway.server.api.{module}.BODY_S", 0.1)
    gateway, _ = await start(well)
    head = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" % path.encode()
    received = await answers(gateway, head + b"content-length: 50\r\n\r\n{")
    assert received.startswith(b"HTTP/1.1 408")
    assert b'"code":"request_timeout"' in received
