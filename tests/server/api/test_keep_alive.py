"""Tests several requests on one client connection: their independence, and the end of the connection."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import Final, cast

import msgspec
import pytest

from gateway.core.errors import ServerShutdown
from gateway.server.http.client_connection import ClientConnection
from gateway.testing.gateway import RunningGateway, hello
from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start
from tests.server.http.test_protocol import GET, POST, well


def asking(stream: bool = True) -> bytes:
    body = json.dumps({**hello(), "stream": stream}).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )


async def connected(gateway: RunningGateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(gateway.host, gateway.port)


async def comes_true(seen: Callable[[], bool], seconds: float = 30) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not seen():  # noqa: ASYNC110 (what is looked at tells nobody when it changes)
                await asyncio.sleep(0.01)
    return seen()


async def test_a_request_that_is_done_does_not_hide_the_end_of_the_next_one(start: Start) -> None:
    let_go = asyncio.Event()

    async def script(connection: Connection) -> None:
        if len(backend.seen) == 1:
            # The framing's end stays out, so that the gateway waits a moment for it.
            await connection.send(HEAD, events("text Hello", "finish"))
            await connection.gone()
        else:
            await connection.send(HEAD, events("text World"))
            await connection.gone()
            let_go.set()

    gateway, backend = await start(script)
    reader, writer = await connected(gateway)
    writer.write(asking())
    await reader.readuntil(b"0\r\n\r\n")
    writer.write(asking())
    await reader.readuntil(b"World")
    await asyncio.sleep(0.1)
    writer.close()
    async with asyncio.timeout(4):
        await let_go.wait()


async def test_a_request_behind_the_feed_does_not_hide_that_its_watcher_leaves(start: Start) -> None:
    gateway, _ = await start(well)
    reader, writer = await connected(gateway)
    writer.write(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    assert await comes_true(lambda: bool(gateway.app.gateway_state.event_bus))
    writer.write(GET + b"\r\n")
    await asyncio.sleep(0.05)
    writer.close()

    def is_over() -> bool:
        # Nobody reads on behind a second request: the end is seen when something is sent.
        gateway.app.gateway_state.event_bus.publish("test", {})
        return not gateway.app.gateway_state.event_bus.watchers

    assert await comes_true(is_over)
    assert await comes_true(lambda: not gateway.server.server_state.tasks)


async def test_garbage_behind_a_second_request_does_not_spoil_the_first_answer(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello"))
        await asyncio.sleep(0.1)
        await connection.send(events("finish"), END)

    gateway, _ = await start(script)
    reader, writer = await connected(gateway)
    writer.write(asking())
    received = await reader.readuntil(b"Hello")
    writer.write(GET + b"\r\n\x00garbage\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        received += await reader.read()
    writer.close()
    assert received.count(b"HTTP/1.1") == 1


async def test_a_line_end_behind_a_request_does_not_cut_its_answer(start: Start) -> None:
    """Some clients send one, and it begins no other request (RFC 9112, section 2.2)."""

    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello"))
        await asyncio.sleep(0.5)
        await connection.send(events("finish"), END)

    gateway, _ = await start(script, header_timeout_s=0.2)
    reader, writer = await connected(gateway)
    writer.write(asking())
    await reader.readuntil(b"Hello")
    writer.write(b"\r\n")
    async with asyncio.timeout(8):
        await reader.readuntil(b"[DONE]")
    writer.close()


@pytest.mark.parametrize("trickles", [False, True])
async def test_a_body_that_nobody_reads_does_not_keep_its_connection(
    start: Start, monkeypatch: pytest.MonkeyPatch, trickles: bool
) -> None:
    monkeypatch.setenv("TEST_GATEWAY_KEYS", "key")
    gateway, _ = await start(well, api_keys_env="TEST_GATEWAY_KEYS")
    reader, writer = await connected(gateway)
    assert await comes_true(lambda: bool(gateway.server.server_state.connections))
    for connection in gateway.server.server_state.connections:
        monkeypatch.setattr(connection, "timeout_keep_alive", 0.3)
    writer.write(POST + b"\r\n")
    assert b"401" in await reader.readuntil(b"\r\n\r\n")
    ended = asyncio.create_task(reader.read())
    with contextlib.suppress(ConnectionError):
        for _ in range(30):
            writer.write(b"x" if trickles else b"x" * 56)
            await asyncio.sleep(0.05)
            if ended.done() or not trickles:
                break
    async with asyncio.timeout(4):
        with contextlib.suppress(ConnectionError):
            await ended
    writer.close()


TEXT: Final = "x" * 60_000


async def long_answer(connection: Connection) -> None:
    await connection.send(HEAD)
    for _ in range(200):
        await connection.send(events(f"text {TEXT}"))
    await connection.send(events("finish"), END)


@pytest.mark.parametrize("reloaded", [False, True], ids=["from the start", "after a reload"])
async def test_a_client_that_takes_nothing_of_a_whole_answer_is_cut_off(start: Start, reloaded: bool) -> None:
    gateway, backend = await start(long_answer, write_timeout_s=60 if reloaded else 0.3)
    if reloaded:
        settings = gateway.app.gateway_state.settings
        server = msgspec.structs.replace(settings.server, write_timeout_s=0.3)
        await gateway.app.gateway_state.change(msgspec.structs.replace(settings, server=server))
    _, writer = await connected(gateway)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stream stub says WriteTransport
    writer.write(asking(stream=False))
    await backend.requested.wait()
    assert await comes_true(lambda: not gateway.server.server_state.connections)
    writer.transport.abort()


async def test_a_client_that_takes_a_whole_answer_slowly_is_not(start: Start) -> None:
    gateway, _ = await start(long_answer, write_timeout_s=1.5)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port, limit=2**16)
    writer.write(asking(stream=False).replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    size = 0
    begun = time.monotonic()
    async with asyncio.timeout(60):
        while piece := await reader.read(2**17):
            size += len(piece)
            await asyncio.sleep(0.02)
    writer.close()
    assert size > 200 * len(TEXT) and time.monotonic() - begun > 1.5


async def test_a_stream_whose_head_could_not_be_sent_yet_ends_with_a_status(start: Start) -> None:
    async def script(connection: Connection) -> None:
        if len(backend.seen) == 1:
            await long_answer(connection)
        else:
            await connection.send(HEAD, events("text World"))
            begun.set()
            await connection.gone()

    begun = asyncio.Event()
    gateway, backend = await start(script)
    reader, writer = await connected(gateway)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stream stub says WriteTransport
    writer.write(asking(stream=False) + asking())
    await begun.wait()
    await asyncio.sleep(0.05)
    gateway.app.gateway_state.scheduler.interrupt_all(lambda: ServerShutdown("stop"))
    await asyncio.sleep(0.05)
    writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
    received = b""
    async with asyncio.timeout(8):
        while b"stop" not in received:
            received = received[-2000:] + await reader.read(2**20)
    writer.close()
    refused = b"HTTP/1.1 503" in received
    assert refused


@pytest.mark.parametrize(
    ("last", "code"),
    [(events("nonsense"), "upstream_invalid_event"), (events("text end", "finish") + END, "server_shutdown")],
    ids=["the backend fails", "the gateway stops behind the last event"],
)
async def test_a_failure_behind_a_keep_alive_that_waits_for_the_client_ends_the_stream(
    start: Start, last: bytes, code: str
) -> None:
    """The stream is closed only when the keep-alive is sent: one that is closed could not tell the failure."""
    silent, failing = asyncio.Event(), asyncio.Event()

    def waiting() -> bool:
        return any(task.get_coro().__qualname__ == "StreamResponder._send" for task in asyncio.all_tasks())  # type: ignore[union-attr]

    async def script(connection: Connection) -> None:
        await connection.send(HEAD)
        # The type of uvicorn's set names its own protocols.
        (peer,) = cast("set[ClientConnection]", gateway.server.server_state.connections)
        while not peer.flow.write_paused:
            await connection.send(events(f"text {TEXT}"))
            await asyncio.sleep(0.01)
        silent.set()
        await failing.wait()
        await connection.send(last)
        await connection.gone()

    gateway, _ = await start(script, sse_ping_s=0.1)
    reader, writer = await connected(gateway)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stream stub says WriteTransport
    writer.write(asking().replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    await silent.wait()
    assert await comes_true(waiting)
    failing.set()
    if code == "server_shutdown":
        await asyncio.sleep(0.05)
    else:
        assert await comes_true(lambda: not gateway.app.gateway_state.scheduler.size)
    gateway.app.gateway_state.scheduler.interrupt_all(lambda: ServerShutdown("stop"))
    writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
    received = await reader.read()
    writer.close()
    ended = received.rpartition(b"data: ")[2]
    assert json.loads(ended.partition(b"\n")[0])["error"]["code"] == code
    assert b"[DONE]" not in received
