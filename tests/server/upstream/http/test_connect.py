"""Tests which address of a host name is used, the order of the attempts, and that no connection is left open."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http import connect as connect
from gateway.server.upstream.http.connect import Place
from gateway.server.upstream.http.errors import ConnectError
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http1.backend_connection import BackendConnection

LISTENS = "127.0.0.1"
# Loopback everywhere on Linux, and nobody listens there.
REFUSES = "127.0.0.2"


@contextmanager
def listening(backlog: int = 8) -> Iterator[int]:
    with socket.create_server((LISTENS, 0), backlog=backlog) as server:
        yield server.getsockname()[1]


def at(host: str, port: int) -> Place:
    return (socket.AF_INET, (host, port))


async def connected(*places: Place) -> str:
    """The address that was reached."""
    with await connect.race(asyncio.get_running_loop(), places, MOST) as sock:
        host: str = sock.getpeername()[0]
        return host


async def test_a_place_that_refuses_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "HEAD_START_S", 60)
    with listening() as port:
        async with asyncio.timeout(5):
            assert await connected(at(REFUSES, port), at(REFUSES, port), at(LISTENS, port)) == LISTENS


async def test_a_place_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "HEAD_START_S", 0.05)
    with listening(backlog=0) as deaf, socket.create_connection((LISTENS, deaf)), listening() as port:
        async with asyncio.timeout(5):
            assert await connected(at(LISTENS, deaf), at(LISTENS, port)) == LISTENS
        waiting = asyncio.create_task(connected(at(LISTENS, deaf), at(LISTENS, deaf)))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    # The losers are let go in the loop's next turns.
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_all_places_may_refuse() -> None:
    with socket.socket() as bound:
        bound.bind((LISTENS, 0))
        place = at(LISTENS, bound.getsockname()[1])
        with pytest.raises(ConnectionRefusedError):
            await connected(place, place, place)


async def test_a_descriptor_above_the_limit_is_not_used() -> None:
    loop = asyncio.get_running_loop()
    with listening() as port, socket.socket() as highest:
        last = highest.fileno() - 1
        with pytest.raises(ConnectError) as raised:
            await connect.Connector(loop, last).connect(
                Origin(LISTENS, port, tls=False), loop.time() + 5, lambda: BackendConnection(loop, ignore, ignore)
            )
        assert isinstance(raised.value.__cause__, OSError)
        assert raised.value.__cause__.errno == errno.EMFILE
        with socket.socket() as lowest_free:
            assert lowest_free.fileno() > last


def ignore(_: BackendConnection) -> None:
    pass


def test_families_take_turns() -> None:
    six: list[Place] = [(socket.AF_INET6, (f"::{number}", 80, 0, 0)) for number in range(3)]
    four = [at("127.0.0.1", 80)]
    assert connect.mixed([*six, *four]) == [six[0], four[0], six[1], six[2]]
    assert connect.mixed(six) == six


async def test_a_connection_whose_opening_is_cancelled_as_it_opens_is_lost() -> None:
    loop = asyncio.get_running_loop()
    lost: list[BackendConnection] = []
    opened = asyncio.Event()

    def opens(_: BackendConnection) -> None:
        opened.set()
        dialing.cancel()

    with listening() as port:
        address = Origin(LISTENS, port, tls=False)
        due = loop.time() + 5
        dialing = loop.create_task(
            connect.Connector(loop, MOST).connect(address, due, lambda: BackendConnection(loop, opens, lost.append))
        )
        with pytest.raises(asyncio.CancelledError):
            await dialing
        await asyncio.sleep(0.01)
    assert opened.is_set()
    assert len(lost) == 1


async def test_of_places_that_fail_in_different_ways_the_last_one_says_why() -> None:
    # No connection leads to the broadcast address.
    unreachable = at("255.255.255.255", 80)
    with socket.socket() as bound:
        bound.bind((LISTENS, 0))
        refuses = at(LISTENS, bound.getsockname()[1])
        with pytest.raises(ConnectionRefusedError):
            await connected(unreachable, refuses)
        with pytest.raises(OSError) as failed:
            await connected(refuses, unreachable)
    assert failed.value.errno in (errno.ENETUNREACH, errno.EACCES)
