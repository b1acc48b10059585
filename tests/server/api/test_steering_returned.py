"""What steers an answer on real sockets and comes into none: it goes back to the client exactly once, before the
gateway closes the connection or where the request that has it would be refused again."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.openai_responses.client.steering import ResponsesSteering
from gateway.core.conversation import Json
from gateway.server.api import websocket_session
from gateway.server.state import connection_answers
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.test_steering import (
    STEERED,
    TOOL,
    Answers,
    Calls,
    begun,
    called,
    chat,
    chat_chunk,
    chat_settings,
    checked,
    failed,
    steer,
    until,
)
from tests.server.backend import END, HEAD, Connection, FaultyBackend, Script, answer, chunk, faulty_backend
from tests.server.conftest import Start
from tests.server.http.test_websocket_messages import FIN, frame
from tests.server.websocket_client import LAST, Socket, connected

# A message that is no text.
BINARY: Final = frame(FIN | 2, b"\x00")
MANY_WORDS: Final = "word " * 60_000


@asynccontextmanager
async def pending() -> AsyncIterator[tuple[Socket, RunningGateway, FaultyBackend, dict[str, Any]]]:
    """A connection whose answer in lane `a` waits for the result of a call, and the event that says so."""
    script = Calls()
    async with chat(script.script) as (gateway, backend), connected(gateway) as socket:
        yield socket, gateway, backend, await owing(socket, script)


async def owing(socket: Socket, script: Calls) -> dict[str, Any]:
    """The event by which a steered answer in lane `a` says that it waits for the result of a call."""
    socket.create("Where?", tools=[TOOL], stream_id="a")
    steer(socket, await called(socket))
    script.open.set()
    return (await until(socket, "response.steer.pending"))[-1]


def continues(socket: Socket, event: dict[str, Any], lane: str | None = "a", **fields: Json) -> None:
    """Asks for the answer to the result that a pending event asks for."""
    [stub] = event["required_input"]
    first = event["steer"]["previous_response_id"]
    result: Json = [{**stub, "output": "a wood"}]
    socket.create(result, previous_response_id=first, tools=[TOOL], stream_id=lane, **fields)


async def goes_back(socket: Socket, event: dict[str, Any]) -> None:
    """Waits for the event that gives the input of a pending one back."""
    found = checked(await socket.event())
    assert (found["type"], found["error"]["code"]) == ("response.steer.failed", "successor_creation_failed"), found
    assert (found["steer"], found["stream_id"]) == ({**event["steer"], "input": STEERED}, "a")


def refusing(status: str) -> Script:
    """A script that refuses the request."""

    async def refuse(connection: Connection) -> None:
        await connection.send(answer(status, b'{"error":{"message":"No."}}'))

    return refuse


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
async def test_messages_of_a_request_that_may_be_sent_again_wait_for_the_next_one(status: str) -> None:
    async with pending() as (socket, _, backend, event):
        script, backend.script = backend.script, refusing(status)
        continues(socket, event)
        assert (await socket.event())["type"] == "error"
        backend.script = script
        continues(socket, event)
        assert (await until(socket, *LAST))[-1]["type"] == "response.completed"
        assert STEERED.encode() in backend.seen[-1][1]


@pytest.mark.parametrize("status", ["400 Bad Request", "413 Content Too Large", "422 Unprocessable Content", None])
async def test_messages_of_a_request_that_would_be_refused_again_go_back(status: str | None) -> None:
    async with pending() as (socket, _, backend, event):
        script = backend.script
        if status is None:
            # The gateway itself refuses it.
            continues(socket, event, temperature="hot")
        else:
            backend.script = refusing(status)
            continues(socket, event)
        assert (await socket.event())["status"] == 400
        await goes_back(socket, event)
        backend.script = script
        continues(socket, event)
        assert (await until(socket, *LAST))[-1]["type"] == "response.completed"
        assert STEERED.encode() not in backend.seen[-1][1]


async def test_messages_of_a_response_that_is_forgotten_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pending() as (socket, _, __, event):
        monkeypatch.setattr(connection_answers, "MOST_BYTES", 4000)
        for _ in range(8):
            socket.create("word " * 100)
            await until(socket, *LAST)
        continues(socket, event)
        assert (await socket.event())["error"]["code"] == "previous_response_not_found"
        await goes_back(socket, event)


async def test_messages_that_wait_go_back_when_the_gateway_stops() -> None:
    async with pending() as (socket, gateway, _, event):
        gateway.app.gateway_state.drain()
        await goes_back(socket, event)
        assert await socket.closed() == 1001


async def test_messages_that_wait_go_back_before_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_session, "IDLE_S", 0.5)
    async with pending() as (socket, _, __, event):
        await goes_back(socket, event)
        assert await socket.closed() == 1001


async def test_messages_that_wait_go_back_at_the_age_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_session, "LIFE_S", 1.0)
    async with pending() as (socket, _, __, event):
        await goes_back(socket, event)
        assert (await socket.event())["error"]["code"] == "websocket_connection_limit_reached"
        assert await socket.closed() == 1001


async def test_messages_that_wait_go_back_before_a_fault_of_the_client_ends_the_connection() -> None:
    async with pending() as (socket, _, __, event):
        socket.write(BINARY)
        await goes_back(socket, event)
        assert (await socket.event())["type"] == "error"
        assert await socket.closed() == 1003


async def test_messages_of_a_running_answer_go_back_before_a_removed_key_ends_the_connection(tmp_path: Path) -> None:
    script = Calls()
    (tmp_path / "keys").write_text("ann:a-key\n")
    async with faulty_backend(script.script) as backend:
        raw = chat_settings(backend, api_keys_file=str(tmp_path / "keys"))
        async with running_gateway(raw) as gateway, connected(gateway, "authorization: Bearer a-key") as socket:
            event = await owing(socket, script)
            script.open.clear()
            socket.create("Where?", tools=[TOOL], stream_id="b")
            second = await called(socket)
            steer(socket, second, "Stop.")
            [accepted] = await until(socket, "response.steer.accepted")
            (tmp_path / "keys").write_text("bob:b-key\n")
            await gateway.app.gateway_state.change(read_settings(raw))
            socket.create()
            await goes_back(socket, event)
            found = checked(await socket.event())
            assert found["steer"] == {**accepted["steer"], "input": "Stop."} and found["stream_id"] == "b"
            assert (await socket.event())["error"]["code"] == "invalid_api_key"
            assert await socket.closed() == 1008


@pytest.mark.parametrize("steers", [1, 2])
@pytest.mark.parametrize("at", range(0, 9, 2))
async def test_wherever_a_connection_ends_each_message_is_in_an_answer_or_goes_back(at: int, steers: int) -> None:
    said = [chat_chunk({"content": f"word {number} "}) for number in range(4)]
    accepted = asyncio.Event()

    async def script(connection: Connection) -> None:
        if accepted.is_set():
            await connection.send(HEAD, chat_chunk({"content": "Voila"}), chat_chunk({}, "stop"))
        else:
            await connection.send(HEAD, *said)
            await accepted.wait()
            await connection.send(chat_chunk({}, "stop"))
        await connection.send(chunk(b"data: [DONE]\n\n"), END)

    async with chat(script) as (gateway, _), connected(gateway) as socket:
        socket.create()
        found = await until(socket, "response.output_text.delta")
        first = found[0]["response"]["id"]
        for number in range(steers):
            steer(socket, first, f"Rather {number}.")
        # Behind so many events the client says what ends the connection.
        while len(found) < 5 + at and not (found and found[-1]["type"] == "response.completed"):
            found.append(checked(await socket.event()))
            accepted.set()
        socket.write(BINARY)
        accepted.set()
        async for event in socket.events():
            found.append(checked(event))
        assert socket.code == 1003
    kinds = [event["type"] for event in found]
    taken = [event["steer"]["id"] for event in found if event["type"] == "response.steer.accepted"]
    back = [event["steer"].get("id") for event in found if event["type"] == "response.steer.failed"]
    back = [one for one in back if one is not None]
    followed = kinds.count("response.created") > 1
    assert len(set(back)) == len(back) and set(back) <= set(taken)
    assert followed or back == taken


async def test_a_steering_event_of_no_use_is_numbered_and_has_the_lane_of_its_answer(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create(stream_id="a")
        first = await begun(socket)
        steer(socket, first, [])
        steer(socket, "resp_unknown", [])
        steer(socket, first)
        steer(socket, first, 7)
        found = [checked(await socket.event()) for _ in range(3)]
        assert [event["sequence_number"] for event in found] == [1, 2, 3]
        assert [event.get("stream_id") for event in found] == ["a", None, "a"]


async def test_the_bytes_of_what_waits_are_counted_as_they_came() -> None:
    script = Calls()
    async with faulty_backend(script.script) as backend:
        raw = chat_settings(backend, max_body_mb=1)
        async with running_gateway(raw) as gateway, connected(gateway) as socket:
            socket.create(tools=[TOOL])
            first = await called(socket)
            blank = " " * 600_000
            given = f'[{{"type":"message","role":"user",{blank}"content":"x"}}]'
            event = f'{{"type":"response.steer","previous_response_id":"{first}","input":{given}}}'
            socket.text(event)
            assert (await socket.event())["type"] == "response.steer.accepted"
            socket.text(event)
            assert (await failed(socket))[0] == "too_many_pending_steers"
            # There is room again once the first one is in an answer.
            script.open.set()
            waiting = (await until(socket, "response.steer.pending"))[-1]
            script.open.clear()
            continues(socket, waiting, lane=None)
            second = await called(socket)
            socket.text(event.replace(first, second))
            assert (await socket.event())["type"] == "response.steer.accepted"


async def test_what_is_no_json_is_an_error_and_the_answer_goes_on(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create()
        first = await begun(socket)
        for value in ("NaN", "Infinity", "-Infinity"):
            given = f'[{{"role":"user","content":{value}}}]'
            socket.text(f'{{"type":"response.steer","previous_response_id":"{first}","input":{given}}}')
            event = await socket.event()
            assert (event["type"], event["status"], event["error"]["code"]) == ("error", 400, "invalid_json")
        script.open.set()
        assert (await socket.answer())[-1]["type"] == "response.completed"


@pytest.mark.parametrize("text", ["Where?", MANY_WORDS])
async def test_what_is_large_is_joined_and_looked_through_beside_other_requests(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    own = threading.get_ident()
    beside: dict[str, bool] = {}

    def seen(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            beside[name] = threading.get_ident() != own
            return work(*args)

        return call

    for name in ("can_steer", "continued", "with_steers", "successor"):
        monkeypatch.setattr(ResponsesSteering, name, seen(name, getattr(ResponsesSteering, name)))
    script = Calls()
    async with chat(script.script) as (gateway, backend), connected(gateway) as socket:
        socket.create(text, tools=[TOOL], stream_id="a")
        steer(socket, await called(socket))
        script.open.set()
        event = (await until(socket, "response.steer.pending"))[-1]
        continues(socket, event, instructions=text)
        assert (await until(socket, *LAST))[-1]["type"] == "response.completed"
        assert STEERED.encode() in backend.seen[-1][1]
    assert beside == dict.fromkeys(("can_steer", "continued", "with_steers"), text == MANY_WORDS)
