"""The table of a client connection's states matches real sockets: every transition occurs, and no other."""

import asyncio
from typing import Final, Literal, TypeAlias

import pytest

from gateway.server.http import client_connection, protocol
from gateway.server.http.client_connection_state import BUSY, CLIENT_TRANSITIONS, IN_HEAD, ClientInput, ClientState
from tests.server.api.test_keep_alive import asking, comes_true, connected
from tests.server.backend import Connection
from tests.server.conftest import Start
from tests.server.http.test_protocol import GET, well
from tests.transitions import arrows, followed, record, seen_all

# Bytes that the client sends, the backend's answer, or the client's departure; and the inputs that follow.
Step: TypeAlias = tuple[bytes | Literal["answer", "leave"], tuple[ClientInput, ...]]

ASK: Final = asking(stream=False)
UPGRADE: Final = GET + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n"
LEFT: Final[Step] = ("leave", ("lost",))
STEPS: Final[dict[str, tuple[Step, ...]]] = {
    "nothing": (LEFT,),
    "half a head": ((GET, ()), LEFT),
    "a request": ((GET + b"\r\n", ("request", "answered")), LEFT),
    "one after the other": (
        (GET + b"\r\n", ("request", "answered")),
        (GET, ("head",)),
        (b"\r\n", ("request", "answered")),
        LEFT,
    ),
    "another protocol": ((UPGRADE, ("request", "answered")), LEFT),
    "a body in pieces": ((ASK[:-9], ("request",)), (ASK[-9:], ()), ("answer", ("answered",)), LEFT),
    "a departure within a body": ((ASK[:-9], ("request",)), LEFT),
    "a departure before the answer": ((ASK, ("request",)), LEFT),
    "a departure within another head": ((ASK + GET, ("request", "head")), LEFT),
    "a head that waits": (
        (ASK + GET + b"\r\n", ("request", "head", "request")),
        ("answer", ("answered",)),
        LEFT,
    ),
    "two heads that wait": (
        (ASK + 2 * (GET + b"\r\n"), ("request", "head", "request", "head", "request")),
        ("answer", ("answered",)),
        LEFT,
    ),
    "an answer before the head ends": (
        (ASK, ("request",)),
        (GET, ("head",)),
        ("answer", ("answered",)),
        (b"\r\n", ("request", "answered")),
        LEFT,
    ),
    "a head that is not accepted": ((b"GET / HTTP/1.1\r\n\r\n", ("lost",)),),
    "an answer that closes": ((GET + b"connection: close\r\n\r\n", ("request", "lost")),),
    "a second head that is not accepted": ((ASK + b"GET / HTTP/1.1\r\n\r\n", ("request", "head", "lost")),),
}


def inputs(name: str) -> list[ClientInput]:
    return [given for _, caused in STEPS[name] for given in caused]


@pytest.mark.parametrize("name", STEPS)
async def test_what_a_client_does_are_the_inputs_of_its_connection(
    start: Start, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    may_answer = asyncio.Event()

    async def script(connection: Connection) -> None:
        await may_answer.wait()
        await well(connection)

    gateway, _ = await start(script)
    seen = record(monkeypatch, "CLIENT_TRANSITIONS", client_connection, protocol)
    _, writer = await connected(gateway)
    try:
        assert await comes_true(lambda: bool(gateway.server.server_state.connections))
        expected: list[str] = []
        for action, caused in STEPS[name]:
            if action == "answer":
                may_answer.set()
            elif action == "leave":
                writer.close()
            else:
                writer.write(action)
            expected += caused
            assert await seen_all(seen, expected), seen
        assert await comes_true(lambda: not gateway.server.server_state.connections)
        assert seen == expected
    finally:
        may_answer.set()
        writer.close()


def test_these_steps_take_every_arrow_of_the_table() -> None:
    taken = [followed(CLIENT_TRANSITIONS, ClientState.HEAD, inputs(name)) for name in STEPS]
    assert set().union(*taken) == arrows(CLIENT_TRANSITIONS)


def test_a_head_begins_and_an_answer_is_due_where_the_table_says_so() -> None:
    # A request ends a head, and begins what an answer ends.
    assert set(IN_HEAD) == {state for state, row in CLIENT_TRANSITIONS.items() if "request" in row}
    assert set(BUSY) == {state for state, row in CLIENT_TRANSITIONS.items() if "answered" in row}
