"""Tests that a reply reaches its call or nobody: after cancellations, and from a server that lies."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

import pytest

from gateway.server.state.store import Put, StoreUnavailable
from gateway.server.state.valkey.address import ServerAddress
from gateway.server.state.valkey.connections import Connections
from gateway.server.state.valkey.scripts import GET
from gateway.server.state.valkey.store import ValkeyStore

Answer = Callable[[bytes, int], bytes]


async def test_of_a_thousand_cancelled_gets_none_gets_the_reply_of_another(store: ValkeyStore) -> None:
    keys = [b"%d" % number for number in range(50)]
    for key in keys:
        await store.put("a", Put("sum", key, b"value of " + key + bytes(random.randrange(20_000)), 60))
    outcomes = Counter[str]()

    async def read(key: bytes) -> None:
        [entry] = await store.get("a", "sum", [key])
        assert entry is not None and entry.data.rstrip(b"\0") == b"value of " + key
        outcomes["read"] += 1

    async def cancelled(key: bytes, chance: random.Random) -> None:
        task = asyncio.create_task(read(key))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        task.cancel()
        # A second one finds it in the middle of giving its connection back.
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            outcomes["cancelled"] += 1

    chance = random.Random(7)
    for _ in range(40):
        await asyncio.gather(*(cancelled(chance.choice(keys), chance) for _ in range(25)), read(chance.choice(keys)))
    for key in keys:
        await read(key)
    assert outcomes.total() == 1090 and outcomes["cancelled"] >= 500, outcomes


@asynccontextmanager
async def lying_server(*answers: Answer) -> AsyncIterator[tuple[ServerAddress, list[int]]]:
    """A server that answers its calls by these functions of the call's token and its number, the last one for all that
    come later. Also how many calls each connection has brought."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        try:
            while command := await _command(reader):
                if command[0] != b"EVALSHA":
                    writer.write(b"+OK\r\n")
                    continue
                connections[-1] += 1
                answer = answers[min(sum(connections), len(answers)) - 1]
                writer.write(answer(command[3 + int(command[2])], sum(connections)))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield ServerAddress("127.0.0.1", listener.sockets[0].getsockname()[1]), connections


@asynccontextmanager
async def lied_to(*answers: Answer) -> AsyncIterator[tuple[Connections, list[int]]]:
    """The connections of a client to such a server."""
    async with lying_server(*answers) as (address, seen), aclosing(Connections(address)) as opened:
        yield opened, seen


async def _command(reader: asyncio.StreamReader) -> list[bytes]:
    head = await reader.readline()
    parts = []
    for _ in range(int(head[1:] or 0)):
        size = int((await reader.readline())[1:])
        parts.append((await reader.readexactly(size + 2))[:-2])
    return parts


def right(token: bytes, number: int) -> bytes:
    return b"*3\r\n$%d\r\n%b\r\n$2\r\nok\r\n$%d\r\n%d\r\n" % (len(token), token, len(str(number)), number)


async def call(connections: Connections) -> list[object]:
    return list(await connections.call(GET, ()))


async def call_shortly(connections: Connections) -> list[object]:
    """A call with a deadline, which nothing answers."""
    async with asyncio.timeout(0.1):
        return await call(connections)


LIES: Final[dict[str, Answer]] = {
    "another call's": lambda token, number: right(token[:-1] + b"x", number),
    "no list": lambda *_: b"+OK\r\n",
    "nothing": lambda *_: b"$-1\r\n",
    "an empty list": lambda *_: b"*0\r\n",
    "a list of less than none": lambda *_: b"*-7\r\n",
    "a nested list": lambda token, _: b"*2\r\n$%d\r\n%b\r\n*1\r\n$1\r\nx\r\n" % (len(token), token),
    "nested without end": lambda *_: b"*1\r\n" * 5000,
    "no protocol": lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a size that is none": lambda *_: b"*1\r\n$ten\r\nx\r\n",
    "a negative size": lambda *_: b"*1\r\n$-5\r\nx\r\n",
    "a line without end": lambda *_: b"+" + bytes(200_000),
    "its token only": lambda token, _: b"*1\r\n$%d\r\n%b\r\n" % (len(token), token),
    "an error inside": lambda token, _: b"*2\r\n$%d\r\n%b\r\n-ERR inside\r\n" % (len(token), token),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_wrong_reply_fails_its_call_and_closes_its_connection(lie: str) -> None:
    async with lied_to(LIES[lie], right) as (connections, seen):
        with pytest.raises(StoreUnavailable) as raised:
            await call(connections)
        assert raised.value.reason == "invalid"
        assert await call(connections) == [b"ok", b"2"]
        assert seen == [1, 1], "the call after it must use another connection"


@pytest.mark.parametrize("part", [b"*3\r\n", b"*3\r\n$8", b"*2\r\n$100\r\nhalf", b""])
async def test_half_a_reply_ends_with_the_deadline_and_closes_its_connection(part: bytes) -> None:
    async with lied_to(lambda *_: part, right) as (connections, seen):
        with pytest.raises(TimeoutError):
            await call_shortly(connections)
        assert await call(connections) == [b"ok", b"2"]
        assert seen == [1, 1]


async def test_a_reply_that_comes_twice_is_taken_once() -> None:
    async with lied_to(lambda *call: 2 * right(*call), right, right) as (connections, seen):
        assert await call(connections) == [b"ok", b"1"]
        with pytest.raises(StoreUnavailable):
            await call(connections)
        assert await call(connections) == [b"ok", b"3"]
        assert seen == [2, 1]


async def test_a_call_that_fails_while_it_waits_for_its_turn_leaves_no_gap() -> None:
    async with lied_to(lambda *_: b"") as (connections, _):
        waiting = [asyncio.create_task(call_shortly(connections)) for _ in range(60)]
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        # One whose connection is closed under it fails by that.
        assert {type(one) for one in ended} <= {TimeoutError, StoreUnavailable}
    async with lied_to(right) as (connections, _):
        for task in (waiting := [asyncio.create_task(call(connections)) for _ in range(60)]):
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        found = await asyncio.gather(*(call(connections) for _ in range(60)))
        assert len(found) == 60


def opened(address: ServerAddress) -> aclosing[ValkeyStore]:
    return aclosing(ValkeyStore(address, lambda *_: None))


async def refused(call: Awaitable[object]) -> str:
    with pytest.raises(StoreUnavailable) as raised:
        await call
    return raised.value.reason


async def test_values_of_the_wrong_kind_and_number_are_invalid() -> None:
    """A reply may carry the right token and still say what no script says."""

    def answered(*parts: bytes) -> Answer:
        return lambda token, _: (
            b"*%d\r\n" % (len(parts) + 1) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in (token, *parts))
        )

    async with lying_server(answered(b"ok", b"no record")) as (address, _), opened(address) as store:
        assert await refused(store.epoch("a")) == "invalid"
    begun = answered(b"ok", bytes(32))
    for parts in ((b"ok",), (b"ok", b"1:a", b"1:b"), (b"done", b"1:a"), (b"epoch", b"short")):
        async with lying_server(begun, answered(*parts)) as (address, _), opened(address) as store:
            assert await refused(store.get("a", "sum", [b"k"])) == "invalid", parts
    async with lying_server(begun, answered(b"ok", b"no number")) as (address, _), opened(address) as store:
        assert await refused(store.acquire("a", "work", 1)) == "invalid"
