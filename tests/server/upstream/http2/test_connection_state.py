"""The table of an HTTP/2 connection's states matches real sockets: every transition occurs, and no other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

import pytest

from gateway.server.upstream.fd_limits import MOST
from gateway.server.upstream.http.connect import Connector
from gateway.server.upstream.http.errors import HttpError
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http2 import connection as connections
from gateway.server.upstream.http2.connection import Http2Connection, Http2Stream
from gateway.server.upstream.http2.connection_state import HTTP2_TRANSITIONS, Http2Input, Http2State
from gateway.server.upstream.http2.request_head import Http2Request
from tests.server.upstream.http2.peer import Peer, frame, serving
from tests.transitions import arrows, followed, record, seen_all

# What the gateway or the backend does, and the inputs that follow.
Action: TypeAlias = Literal["ask", "leave", "abort", "greet", "go away", "close", "garbage"]
Step: TypeAlias = tuple[Action, tuple[Http2Input, ...]]

REQUEST: Final = Http2Request(
    ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"x"), (b":path", b"/")), b""
)
GREET: Final[Step] = ("greet", ("settings",))
ASK: Final[Step] = ("ask", ())
GO_AWAY: Final[Step] = ("go away", ("drained",))
STEPS: Final[dict[str, tuple[Step, ...]]] = {
    "closed by the backend": (GREET, ("close", ("lost",)), ("abort", ("fault",))),
    "closed before its SETTINGS": (("close", ("lost",)),),
    "no HTTP/2": (("garbage", ("fault", "lost")),),
    "going away before its SETTINGS": (("go away", ("drained", "fault", "lost")),),
    "given up": (GREET, ("abort", ("fault",)), ("abort", ("fault", "lost"))),
    "going away twice": (GREET, ASK, GO_AWAY, GO_AWAY, ("leave", ("drained", "fault", "lost"))),
    "lost while it drains": (GREET, ASK, GO_AWAY, ("close", ("lost",))),
}
GOAWAY: Final = frame(7, payload=(2**31 - 1).to_bytes(4, "big") + bytes(4))


def inputs(name: str) -> list[Http2Input]:
    return [given for _, caused in STEPS[name] for given in caused]


@pytest.mark.parametrize("name", STEPS)
async def test_what_both_sides_do_are_the_inputs_of_the_connection(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    seen = record(monkeypatch, "HTTP2_TRANSITIONS", connections)
    loop = asyncio.get_running_loop()
    accepted = loop.create_future()

    async def script(peer: Peer) -> None:
        accepted.set_result(peer)
        await peer.closed()

    connection = Http2Connection(loop, lambda _: None, lambda _: None, lambda: None)
    stream = Http2Stream(connection)
    async with serving(script) as (port, _):
        origin = Origin("127.0.0.1", port, tls=False)
        await Connector(loop, MOST).connect(origin, loop.time() + 5, lambda: connection)
        peer: Peer = await accepted

        async def ask() -> None:
            await connection.wait_open()
            stream.send_request(REQUEST, 2**20)

        actions: dict[Action, Callable[[], Awaitable[None] | None]] = {
            "ask": ask,
            "leave": stream.leave,
            "abort": connection.abort,
            "greet": peer.greet,
            "go away": lambda: peer.raw(GOAWAY),
            "close": peer.writer.transport.abort,
            "garbage": lambda: peer.raw(b"garbage without a frame"),
        }
        expected = ["opened"]
        assert seen == expected
        for action, caused in STEPS[name]:
            if (waits := actions[action]()) is not None:
                await waits
            expected += caused
            assert await seen_all(seen, expected), seen


async def test_a_connection_that_goes_away_before_its_settings_takes_no_request() -> None:
    async def script(peer: Peer) -> None:
        peer.raw(GOAWAY)
        await peer.closed()

    loop = asyncio.get_running_loop()
    connection = Http2Connection(loop, lambda _: None, lambda _: None, lambda: None)
    async with serving(script) as (port, _):
        await Connector(loop, MOST).connect(Origin("127.0.0.1", port, tls=False), None, lambda: connection)
        with pytest.raises(HttpError):
            await connection.wait_open()


def test_these_steps_take_every_arrow_of_the_table() -> None:
    taken = [followed(HTTP2_TRANSITIONS, Http2State.NEW, ["opened", *inputs(name)]) for name in STEPS]
    assert set().union(*taken) == arrows(HTTP2_TRANSITIONS)
