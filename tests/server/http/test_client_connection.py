"""Tests when the gateway closes a connection, and the guarantees for its requests."""

import asyncio

import pytest
from starlette.types import Scope

from gateway.server.http.client_connection import ClientConnection
from gateway.server.http.response_writer import ResponseWriter
from tests.server.api.test_keep_alive import TEXT, asking, comes_true, connected, long_answer
from tests.server.conftest import Start
from tests.server.http.test_protocol import CHAT, GET, POST, well


async def test_a_connection_rests_between_its_requests_and_not_for_ever(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _ = await start(well)
    reader, writer = await connected(gateway)
    assert await comes_true(lambda: bool(gateway.server.server_state.connections))
    for connection in gateway.server.server_state.connections:
        monkeypatch.setattr(connection, "timeout_keep_alive", 1)
    loop = asyncio.get_running_loop()
    for _ in range(3):
        writer.write(GET + b"\r\n")
        assert b"200" in await reader.readuntil(b"}")
        rests = loop.time()
        await asyncio.sleep(0.5)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    assert loop.time() - rests > 0.9
    writer.close()


async def test_the_rest_between_two_requests_ends_with_a_head_that_has_its_own_deadline(start: Start) -> None:
    gateway, _ = await start(well, header_timeout_s=0.3)
    reader, writer = await connected(gateway)
    writer.write(GET + b"\r\n" + GET)
    assert b"200" in await reader.readuntil(b"}")
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("value", [b"100-continue", b"100-Continue"])
async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(start: Start, value: bytes) -> None:
    gateway, _ = await start(well)
    reader, writer = await connected(gateway)
    writer.write(POST + b"connection: close\r\nexpect: %s\r\n\r\n" % value)
    async with asyncio.timeout(4):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(CHAT)
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200") and b"Hello" in answer
    writer.close()


async def test_a_client_of_http_1_0_is_not_asked_for_its_body(start: Start) -> None:
    gateway, _ = await start(well)
    reader, writer = await connected(gateway)
    writer.write(POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"expect: 100-continue\r\n\r\n")
    assert await comes_true(lambda: bool(gateway.server.server_state.tasks))
    await asyncio.sleep(0.05)
    writer.write(CHAT)
    async with asyncio.timeout(4):
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_head_that_is_late_does_not_cut_an_answer_that_is_on_its_way(start: Start) -> None:
    gateway, backend = await start(long_answer, header_timeout_s=0.2)
    reader, writer = await connected(gateway)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stream stub says WriteTransport
    writer.write(asking(stream=False) + GET)
    await backend.requested.wait()
    for connection in gateway.server.server_state.connections:
        connection.shutdown()
    assert await comes_true(lambda: not gateway.server.server_state.tasks)
    await asyncio.sleep(0.4)
    writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
    size = 0
    async with asyncio.timeout(8):
        while piece := await reader.read(2**20):
            size += len(piece)
    assert size > 200 * len(TEXT)
    writer.close()


async def test_a_client_is_read_on_only_when_none_of_its_requests_waits(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _ = await start(well)
    reader, writer = await connected(gateway)
    request, count = GET + b"x-padding: %b\r\n\r\n" % (b"x" * 1000), 2000
    # asyncio reads so many bytes of a socket at once.
    at_once = 256 * 1024 // len(request) + 1
    most = 0
    begin = ClientConnection.begin

    def noted(self: ClientConnection, response: ResponseWriter, scope: Scope) -> None:
        nonlocal most
        begin(self, response, scope)
        most = max(most, len(self._waiting))

    monkeypatch.setattr(ClientConnection, "begin", noted)
    writer.write(request * count)
    async with asyncio.timeout(60):
        for _ in range(count):
            assert b" 200 " in (await reader.readuntil(b"}")).split(b"\r\n")[0]
    assert 0 < most <= at_once
    # The body of the last one of those that waited is read, too.
    writer.write(GET + b"\r\n" + POST + b"connection: close\r\n\r\n" + CHAT[:10])
    async with asyncio.timeout(30):
        assert b" 200 " in await reader.readuntil(b"}")
        writer.write(CHAT[10:])
        assert b"Hello" in await reader.read()
    writer.close()


async def test_an_application_that_leaves_its_answer_open_does_not_pass_for_complete(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _ = await start(well)

    async def nothing(*_: object) -> None:
        pass

    reader, writer = await connected(gateway)
    assert await comes_true(lambda: bool(gateway.server.server_state.connections))
    for connection in gateway.server.server_state.connections:
        monkeypatch.setattr(connection, "app", nothing)
    writer.write(GET + b"\r\n")
    async with asyncio.timeout(4):
        assert (await reader.read()).startswith(b"HTTP/1.1 500")
    assert not gateway.server.server_state.tasks
    writer.close()
