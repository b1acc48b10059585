"""The table of a backend connection's states matches real sockets: every transition occurs, and no other."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias

import pytest

from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.errors import HttpError
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http1 import backend_connection
from gateway.server.upstream.http1.backend_connection import BackendConnection
from gateway.server.upstream.http1.backend_connection_state import BACKEND_TRANSITIONS, BackendInput, BackendState
from gateway.testing.faulty import answer
from tests.server.api.test_keep_alive import comes_true
from tests.transitions import arrows, followed, record, seen_all

# What the gateway does, what the backend does (bytes: it sends them), and the inputs that follow.
Step: TypeAlias = tuple[bytes | Literal["ask", "read", "rest", "abort", "close", "fails"], tuple[BackendInput, ...]]

WHOLE: Final = answer("200 OK", b"abc")
ASK: Final[Step] = ("ask", ("request",))
READ: Final[Step] = ("read", ())
FAILS: Final[Step] = ("fails", ())
STEPS: Final[dict[str, tuple[Step, ...]]] = {
    "kept, and closed by the backend": (ASK, (WHOLE, ()), READ, ("rest", ("released",)), ("close", ("lost",))),
    "kept, and used again": (
        *(ASK, (WHOLE, ()), READ, ("rest", ("released",))),
        *(ASK, (WHOLE, ()), READ, ("rest", ("released",)), ("abort", ("fault", "lost"))),
    ),
    "not kept, for it is the last": (
        *(ASK, (answer("200 OK", b"abc", b"connection: close"), ()), READ),
        *(("rest", ()), ("abort", ("fault", "lost"))),
    ),
    "given up": (ASK, ("abort", ("fault", "lost"))),
    "closed under a request": (ASK, ("close", ("lost", "fault"))),
    "closed when it may be": (ASK, (b"HTTP/1.1 200 OK\r\n\r\nabc", ()), ("close", ("lost",))),
    "no HTTP": (ASK, (b"garbage\r\n\r\n", ("fault", "lost")), ("abort", ("fault",))),
    "faulty, and given up before it is lost": (ASK, ("abort", ("fault",)), ("abort", ("fault", "lost"))),
    "bytes that nobody asked for": ((WHOLE, ("fault", "lost")),),
    "a request after a fault": (("abort", ("fault",)), ("ask", ("request", "lost")), FAILS),
    "a request after its end": (("close", ("lost", "fault")), ASK, FAILS),
}


def inputs(name: str) -> list[BackendInput]:
    return [given for _, caused in STEPS[name] for given in caused]


@asynccontextmanager
async def accepted(listener: socket.socket, connection: BackendConnection) -> AsyncIterator[socket.socket]:
    """The backend's end of the connection, which is opened."""
    loop = asyncio.get_running_loop()
    origin = Origin("127.0.0.1", listener.getsockname()[1], tls=False)
    await Connector(loop, MOST).connect(origin, loop.time() + 5, lambda: connection)
    backend, _ = listener.accept()
    with backend:
        backend.setblocking(False)
        try:
            yield backend
        finally:
            connection.abort()


async def take(step: Step, connection: BackendConnection, backend: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    action, caused = step
    match action:
        case "ask":
            connection.send_request(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", 2**20)
        case "read":
            assert await comes_true(lambda: connection.response.status > 0)
        case "rest":
            assert connection.become_idle(loop.time()) == bool(caused)
        case "abort":
            connection.abort()
        case "fails":
            with pytest.raises(HttpError):
                connection.arrival()
        case "close":
            backend.shutdown(socket.SHUT_WR)
        case _:
            await loop.sock_sendall(backend, action)


@pytest.mark.parametrize("name", STEPS)
async def test_what_both_sides_do_are_the_inputs_of_the_connection(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    seen = record(monkeypatch, "BACKEND_TRANSITIONS", backend_connection)
    connection = BackendConnection(asyncio.get_running_loop(), lambda _: None, lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with accepted(listener, connection) as backend:
            expected = ["opened"]
            assert seen == expected
            for step in STEPS[name]:
                await take(step, connection, backend)
                expected += step[1]
                assert await seen_all(seen, expected), seen


def test_these_steps_take_every_arrow_of_the_table() -> None:
    taken = [followed(BACKEND_TRANSITIONS, BackendState.NEW, ["opened", *inputs(name)]) for name in STEPS]
    assert set().union(*taken) == arrows(BACKEND_TRANSITIONS)
