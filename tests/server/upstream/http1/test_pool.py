"""Tests on real sockets which connections are used again, and how long they are kept."""

import asyncio
from collections.abc import Mapping

import pytest

from gateway.core.errors import BackendError
from gateway.server.upstream.http1 import pool
from gateway.testing.faulty import END, HEAD, Connection, Script, answer, chunk
from tests.server.api.test_keep_alive import comes_true
from tests.server.upstream.http1.peer import OK, WHOLE, reset, says, talking
from tests.server.upstream.transport_client import TransportClient, everything


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
    ("script", "afterwards", "headers"),
    [
        (says(OK + b"connection: close\r\ncontent-length: 3\r\n\r\nabc"), says(), {}),
        (says(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc"), says(), {}),
        (says(OK + b"\r\nab", b"c", then=Connection.close), says(), {}),
        (says(WHOLE), says(then=Connection.close), {}),
        (says(WHOLE + b"surplus"), says(), {}),
        (says(WHOLE), says(b"surplus"), {}),
        (says(WHOLE + WHOLE), says(), {}),
        (says(answer("200 OK", b"abc", b"keep-alive: timeout=1, max=9")), says(), {}),
        (says(WHOLE), says(), {"connection": "close"}),
    ],
)
async def test_a_doubtful_connection_is_not(
    script: Script, afterwards: Script, headers: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No connection may be closed for its age alone.
    monkeypatch.setattr(pool, "TICK_S", 600)
    # What follows an answer must not be in one read with it.
    read = asyncio.Event()

    async def both(connection: Connection) -> None:
        await script(connection)
        await read.wait()
        await afterwards(connection)

    async with talking(both) as (client, _, numbers):
        for _ in range(2):
            read.clear()
            assert await client.ask(headers=headers) == b"abc"
            read.set()
            assert await comes_true(lambda: not _open_connections(client), 20)
        assert (numbers, client.tries) == ([0, 1], 2)


def _open_connections(client: TransportClient) -> int:
    return sum(one.size for one in client.transport._pools.values())


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
async def test_who_hangs_up_at_once_is_not_believed_for_a_while(
    promise: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # However late the loop is, the connection was short-lived.
    monkeypatch.setattr(pool, "SHORT_LIVED_S", 20)
    # A close in one read with the answer would come before the connection is kept.
    read = asyncio.Event()

    async def hasty(connection: Connection) -> None:
        await connection.send(answer("200 OK", b"abc", *promise))
        # The others stay open, so that only the client's doubt ends them.
        if not read.is_set():
            await read.wait()
            connection.close()

    async with talking(hasty) as (client, _, numbers):
        await client.ask()
        read.set()
        assert await comes_true(lambda: not _open_connections(client), 20)
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
