"""Steering over a WebSocket on real sockets: where an answer may end, what follows it, and what goes back.
OpenAI's published types decide whether an event about steering is one."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import (
    ResponseSteerAcceptedEvent,
    ResponseSteerFailedEvent,
    ResponseSteerPendingEvent,
)
from pydantic import BaseModel

from gateway.core.conversation import Json
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.test_hidden_rounds import NAMES, SEARCHING, STALL, said, serving, tools
from tests.server.api.test_keep_alive import comes_true
from tests.server.backend import END, HEAD, Connection, FaultyBackend, answer, chunk, events, faulty_backend
from tests.server.conftest import PATIENT, Start, settings_for
from tests.server.websocket_client import LAST, Socket, connected, texts

STEERED: Final = "Rather in French."
ABOUT: Final[dict[str, type[BaseModel]]] = {
    "response.steer.accepted": ResponseSteerAcceptedEvent,
    "response.steer.pending": ResponseSteerPendingEvent,
    "response.steer.failed": ResponseSteerFailedEvent,
}


class Answers:
    """A script whose first answer says these pieces and then waits until it is `open`; any later one comes at once."""

    def __init__(self, *pieces: str, rest: Sequence[str] = ("text the rest", "finish")) -> None:
        self.open = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._pieces = pieces
        self._rest = rest
        self.begun = 0

    async def script(self, connection: Connection) -> None:
        self.begun += 1
        if self.begun > 1:
            await connection.send(HEAD, events("text Voila", "usage 7 2", "finish"), END)
            return
        await connection.send(HEAD, events(*self._pieces))
        gone = asyncio.create_task(connection.gone())
        opened = asyncio.create_task(self.open.wait())
        await asyncio.wait([gone, opened], return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if gone.done():
            self.cancelled.set()
        else:
            gone.cancel()
            await connection.send(events(*self._rest), END)


def checked(event: dict[str, Any]) -> dict[str, Any]:
    """The event, which is of its published type if it is about steering."""
    if (published := ABOUT.get(event["type"])) is not None:
        published.model_validate(event, strict=True)
        assert not published.model_validate(event).model_extra
    return event


async def until(socket: Socket, *kinds: str) -> list[dict[str, Any]]:
    """The events up to the first one of these types."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] not in kinds:
        found.append(checked(await socket.event()))
    return found


async def begun(socket: Socket, text: str = "one") -> str:
    """The id of the running answer, once this text of it is there."""
    found: list[dict[str, Any]] = []
    while text not in texts(found):
        found.append(await socket.event())
    return str(found[0]["response"]["id"])


def steer(socket: Socket, answer_id: str, given: Json = STEERED, **more: Json) -> None:
    socket.send({"type": "response.steer", "previous_response_id": answer_id, "input": given, **more})


async def failed(socket: Socket) -> tuple[str, Any]:
    """The code with which the next event, about steering, gives its input back, and the input."""
    event = checked(await socket.event())
    assert event["type"] == "response.steer.failed", event
    return event["error"]["code"], event["steer"]["input"]


async def test_a_steered_answer_ends_and_its_successor_continues_it(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    script = Answers("text one ", "text two")
    gateway, backend = await start(script.script)
    async with connected(gateway, "x-dragoman-explain: 1") as socket:
        socket.create("Hello", stream_id="a", metadata={"job": "7"})
        first = await begun(socket)
        steer(socket, first)
        found = await until(socket, "response.incomplete")
        [accepted] = [event for event in found if event["type"] == "response.steer.accepted"]
        assert accepted["steer"]["previous_response_id"] == first and accepted["stream_id"] == "a"
        ended = found[-1]["response"]
        assert (ended["id"], ended["incomplete_details"]) == (first, {"reason": "steered"})
        assert [item["content"][0]["text"] for item in ended["output"]] == ["one two"]
        assert ended["usage"]["output_tokens"] > 0
        assert "ANSWER_STEERED" in [one["rule"] for one in ended["dragoman"]["diagnostics"]]
        following = await until(socket, "response.completed")
        assert following[0]["type"] == "response.created"
        successor = following[-1]["response"]
        assert successor["previous_response_id"] == first and successor["metadata"] == {"job": "7"}
        assert successor["usage"]["input_tokens"] == 7
        assert {event["stream_id"] for event in following} == {"a"}
        # The successor is a response like any other.
        socket.create("And then?", previous_response_id=successor["id"])
        await socket.answer()
    assert script.cancelled.is_set()
    assert backend.seen[1][1] == f"inner\nHello\none two\n{STEERED}".encode()
    assert backend.seen[2][1] == f"inner\nHello\none two\n{STEERED}\nVoila\nAnd then?".encode()
    assert await comes_true(lambda: caplog.text.count("POST /v1/responses") == 3)
    assert "ANSWER_STEERED" in caplog.text or "response.steer" in caplog.text
    metrics = (await gateway.client.get("/metrics")).text
    assert 'rule="ANSWER_STEERED"' in metrics


async def test_a_stored_answer_that_was_steered_is_what_was_sent(start: Start) -> None:
    script = Answers("text one ", "text two")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create("Hello", store=True)
        first = await begun(socket)
        steer(socket, first)
        successor = (await until(socket, "response.completed"))[-1]["response"]
    stored = (await gateway.client.get(f"/v1/responses/{first}")).json()
    assert stored["incomplete_details"] == {"reason": "steered"}
    assert stored["output"][0]["content"][0]["text"] == "one two"
    assert (await gateway.client.get(f"/v1/responses/{successor['id']}")).json()["previous_response_id"] == first


async def test_the_backend_is_cancelled_before_the_client_has_the_end(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create()
        steer(socket, await begun(socket))
        await until(socket, "response.incomplete")
        async with asyncio.timeout(PATIENT["idle"] if isinstance(PATIENT["idle"], int) else None):
            await script.cancelled.wait()


async def test_what_comes_behind_the_finish_is_a_successor_of_a_complete_answer() -> None:
    # The connection stays open behind the finish: usage may still come.
    async def late(connection: Connection) -> None:
        await connection.send(HEAD, chat_chunk({"content": "one"}), chat_chunk({}, "stop"))
        await asyncio.sleep(0.5)
        await connection.send(chunk(b"data: [DONE]\n\n"), END)

    async with chat(late) as (gateway, backend), connected(gateway) as socket:
        socket.create()
        steer(socket, await begun(socket))
        found = await until(socket, "response.completed")
        await until(socket, "response.created")
        assert [event["type"] for event in found].count("response.completed") == 1
        await until(socket, *LAST)
        assert len(backend.seen) == 2


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (None, {}),
        ([], {}),
        (7, {}),
        ([{"role": "system", "content": "x"}], {}),
        ([{"type": "function_call_output", "call_id": "c", "output": "x"}], {}),
        ([{"role": "user", "content": []}], {}),
        ([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}], {}),
        ([{"role": "user", "content": "x", "id": "msg_1"}], {}),
        ("x", {"stream_id": "a"}),
        ("x", {"metadata": {}}),
    ],
)
async def test_input_that_no_steering_event_has_goes_back(start: Start, given: Json, more: dict[str, Json]) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create()
        steer(socket, await begun(socket), given, **more)
        event = await socket.event()
        assert (event["type"], event["error"]["code"]) == ("response.steer.failed", "invalid_input")
        assert event["steer"]["input"] == (given if isinstance(given, list | str) else [])
        script.open.set()
        assert (await socket.answer())[-1]["type"] == "response.completed"


async def test_an_answer_that_is_not_running_is_not_steered(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket, connected(gateway) as other:
        steer(socket, "resp_unknown")
        assert await failed(socket) == ("response_not_found", STEERED)
        socket.create(stream_id="a")
        first = await begun(socket)
        # Of another connection.
        steer(other, first)
        assert (await failed(other))[0] == "response_not_found"
        steer(socket, first)
        successor = (await until(socket, "response.completed"))[-1]["response"]["id"]
        steer(socket, first)
        assert (await failed(socket))[0] == "response_not_active"
        steer(socket, successor, [{"type": "message", "role": "user", "content": "x"}])
        event = checked(await socket.event())
        assert (event["error"]["code"], event["stream_id"]) == ("response_already_completed", "a")
        assert event["steer"]["input"] == [{"type": "message", "role": "user", "content": "x"}]


async def test_the_tokens_of_a_long_prompt_are_estimated_beside_other_requests(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create("word " * 60_000)
        steer(socket, await begun(socket))
        ended = (await until(socket, *LAST))[-1]["response"]
        assert ended["usage"]["input_tokens"] > 30_000
        await until(socket, "response.completed")


async def test_half_a_character_in_a_request_does_not_hinder_its_steering(start: Start) -> None:
    script = Answers("text one")
    gateway, backend = await start(script.script)
    async with connected(gateway) as socket:
        socket.text(r'{"type":"response.create","model":"m","store":false,"input":"Hello","metadata":{"a":"\ud83d"}}')
        steer(socket, await begun(socket))
        assert (await until(socket, *LAST))[-1]["type"] == "response.incomplete"
        await until(socket, "response.completed")
    assert backend.seen[1][1].endswith(STEERED.encode())


async def test_an_answer_whose_history_may_be_compacted_is_not_steered(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create(context_management=[{"type": "compaction", "compact_threshold": 100000}])
        steer(socket, await begun(socket))
        assert await failed(socket) == ("steering_not_supported", STEERED)


async def test_an_answer_that_fails_gives_the_input_back() -> None:
    async with chat(open_call) as (gateway, _), connected(gateway) as socket:
        socket.create(tools=[TOOL])
        first = await called(socket)
        steer(socket, first)
        found = await until(socket, "response.steer.failed")
        kinds = [event["type"] for event in found]
        assert kinds[0] == "response.steer.accepted" and "response.failed" in kinds
        assert found[-1]["error"]["code"] == "successor_creation_failed"
        assert found[-1]["steer"]["id"] == found[0]["steer"]["id"]
        assert found[-1]["steer"]["input"] == STEERED


async def test_a_successor_that_the_backend_refuses_gives_the_input_back(start: Start) -> None:
    script = Answers("text one")

    async def busy(connection: Connection) -> None:
        if script.begun:
            await connection.send(answer("503 Service Unavailable", b"busy"))
        else:
            await script.script(connection)

    gateway, _ = await start(busy)
    async with connected(gateway) as socket:
        socket.create()
        steer(socket, await begun(socket))
        found = await until(socket, "response.steer.failed")
        assert found[-1]["error"]["code"] == "successor_creation_failed"
        assert "error" not in [event["type"] for event in found]
        # The connection stays.
        steer(socket, "resp_unknown")
        assert (await failed(socket))[0] == "response_not_found"


async def test_the_limits_of_a_key_count_the_successor(tmp_path: Path) -> None:
    script = Answers("text one")
    async with keyed(tmp_path, script, requests_per_minute=1) as (socket, _, _):
        socket.create()
        steer(socket, await begun(socket))
        found = await until(socket, "response.steer.failed")
        assert found[-1]["error"]["code"] == "successor_creation_failed"
        assert script.begun == 1


async def test_a_key_that_a_reload_removes_steers_nothing(tmp_path: Path) -> None:
    script = Answers("text one")
    async with keyed(tmp_path, script) as (socket, gateway, raw):
        socket.create()
        first = await begun(socket)
        (tmp_path / "keys").write_text("bob:b-key\n")
        await gateway.app.gateway_state.change(read_settings(raw))
        steer(socket, first)
        assert (await socket.event())["error"]["code"] == "invalid_api_key"
        assert await socket.closed() == 1008


async def test_a_stop_gives_the_input_back(start: Start) -> None:
    script = Answers("text one")
    gateway, _ = await start(script.script)
    async with connected(gateway) as socket:
        socket.create()
        first = await begun(socket)
        gateway.app.gateway_state.drain()
        steer(socket, first)
        found = await until(socket, "response.steer.failed")
        assert "response.incomplete" in [event["type"] for event in found]
        assert found[-1]["error"]["code"] == "successor_creation_failed"
        assert await socket.closed() == 1001


async def test_a_client_that_is_killed_behind_a_steering_event_ends_everything(start: Start) -> None:
    script = Answers("text one")

    async def endless(connection: Connection) -> None:
        if script.begun:
            script.begun += 1
            await connection.send(HEAD, events("text Voila"))
            await connection.gone()
        else:
            await script.script(connection)

    gateway, backend = await start(endless)
    for wait in (False, True):
        script.begun = 0
        backend.closed.clear()
        async with connected(gateway) as socket:
            socket.create()
            steer(socket, await begun(socket))
            if wait:
                await until(socket, "response.created")
            socket.kill()
        assert await comes_true(lambda: not gateway.app.gateway_state.websockets)
        assert await comes_true(lambda: gateway.app.gateway_state.scheduler.size == 0)
        assert await comes_true(backend.closed.is_set)


async def test_the_inspector_and_recordings_have_both_requests(start: Start, tmp_path: Path) -> None:
    script = Answers("text one")
    async with faulty_backend(script.script) as backend:
        raw: dict[str, Json] = {**settings_for(backend.base_url), "inspector": {"record": str(tmp_path / "kept")}}
        async with running_gateway(raw) as gateway, connected(gateway) as socket:
            socket.create()
            steer(socket, await begun(socket))
            await until(socket, "response.completed")
            shown = (await gateway.client.get("/inspect/api/requests")).json()["requests"]
            assert [one["status"] for one in shown if one["path"] == "/v1/responses" and one["method"] == "POST"] == [
                200,
                200,
            ]
    kept = "".join(path.read_text() for path in (tmp_path / "kept").rglob("*.jsonl"))
    assert kept.count('"method":"POST","path":"/v1/responses"') == 2


# Calls


TOOL: Final[Json] = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def chat_chunk(delta: dict[str, Json], finish: str | None = None) -> bytes:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    document: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return chunk(b"data: %s\n\n" % json.dumps(document).encode())


def call_delta(index: int, arguments: str, **more: Json) -> dict[str, Json]:
    function: dict[str, Json] = {"arguments": arguments, **more}
    begins: dict[str, Json] = {"id": f"call_{index}", "type": "function"} if more else {}
    return {"tool_calls": [{"index": index, **begins, "function": function}]}


@asynccontextmanager
async def chat(script: Any) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """A gateway before a backend of chat completions that plays this script."""
    async with faulty_backend(script) as backend, running_gateway(chat_settings(backend)) as gateway:
        yield gateway, backend


def chat_settings(backend: FaultyBackend, **server: Json) -> dict[str, Json]:
    """Settings with one model `m` on a backend of chat completions."""
    timeouts: Json = {**PATIENT, "idle": 1}
    entry: Json = {"adapter": "openai_chat", "base_url": f"{backend.base_url}/v1", "timeouts": timeouts}
    return {**settings_for("", PATIENT, **server), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}


@asynccontextmanager
async def keyed(
    folder: Path, script: Answers, **limits: Json
) -> AsyncIterator[tuple[Socket, RunningGateway, dict[str, Json]]]:
    """A connection of the client `ann` with these limits, its gateway and the settings."""
    (folder / "keys").write_text("ann:a-key\n")
    async with faulty_backend(script.script) as backend:
        raw = settings_for(backend.base_url, api_keys_file=str(folder / "keys"))
        raw["keys"] = {"ann": limits} if limits else {}
        async with running_gateway(raw) as gateway, connected(gateway, "authorization: Bearer a-key") as socket:
            yield socket, gateway, raw


async def open_call(connection: Connection) -> None:
    """Begins a call and says no more."""
    await connection.send(HEAD, chat_chunk({"content": "I look."}), chat_chunk(call_delta(0, '{"at"', name="look")))
    await connection.gone()


async def called(socket: Socket) -> str:
    """The id of the running answer, once a call of it has begun."""
    found = await until(socket, "response.function_call_arguments.delta")
    return str(found[0]["response"]["id"])


class Calls:
    """Begins a call, which it ends once it is let go on, and then says what nobody waits for."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.later = 0

    async def script(self, connection: Connection) -> None:
        if self.open.is_set():
            self.later += 1
            await connection.send(HEAD, chat_chunk({"content": "Voila"}), chat_chunk({}, "stop"))
            await connection.send(chunk(b"data: [DONE]\n\n"), END)
            return
        await connection.send(HEAD, chat_chunk(call_delta(0, '{"at"', name="look")))
        await self.open.wait()
        await connection.send(chat_chunk(call_delta(0, ':"north"}')), chat_chunk({}, "tool_calls"))
        await connection.send(chunk(b"data: [DONE]\n\n"), END)


async def test_what_steers_an_answer_with_calls_waits_for_their_results() -> None:
    script = Calls()
    async with chat(script.script) as (gateway, backend), connected(gateway) as socket:
        socket.create("Where?", tools=[TOOL], stream_id="a")
        first = await called(socket)
        for number in range(5):
            steer(socket, first, f"Faster {number}.")
        accepted = [checked(await socket.event()) for _ in range(4)]
        assert {event["type"] for event in accepted} == {"response.steer.accepted"}
        assert await failed(socket) == ("too_many_pending_steers", "Faster 4.")
        script.open.set()
        ended = (await until(socket, *LAST))[-1]
        [call] = ended["response"]["output"]
        assert ended["type"] == "response.completed" and call["arguments"] == '{"at":"north"}'
        pending = [checked(await socket.event()) for _ in range(4)]
        assert {event["type"] for event in pending} == {"response.steer.pending"}
        assert [event["steer"] for event in pending] == [event["steer"] for event in accepted]
        [stub] = pending[0]["required_input"]
        assert stub == {"type": "function_call_output", "call_id": call["call_id"], "name": "look"}
        result: Json = {**stub, "output": "a wood"}
        # Of another lane: it carries nothing.
        socket.create([result], previous_response_id=first, tools=[TOOL], stream_id="b")
        await until(socket, *LAST)
        assert b"Faster" not in backend.seen[-1][1]
        socket.create([result], previous_response_id=first, tools=[TOOL], stream_id="a")
        assert (await until(socket, *LAST))[-1]["type"] == "response.completed"
        sent = json.loads(backend.seen[-1][1])["messages"]
        whole = json.dumps(sent)
        assert all(f"Faster {number}." in whole for number in range(4)) and "a wood" in whole
        # Once only.
        socket.create([result], previous_response_id=first, tools=[TOOL], stream_id="a")
        await until(socket, *LAST)
        assert b"Faster" not in backend.seen[-1][1]


async def test_an_answer_is_steered_in_a_hidden_round_and_tells_the_tokens_of_all_rounds() -> None:
    described = [{**one["function"], "type": "function"} for one in tools(*NAMES) if isinstance(one, dict)]  # type: ignore[dict-item]
    rounds = (SEARCHING, (STALL,), (said("Voila"), said(finish="stop")))
    async with serving(*rounds) as (gateway, backend), connected(gateway) as socket:
        socket.create("Weather?", tools=[*described])
        first = await begun(socket, "Let me look.")
        assert await comes_true(lambda: len(backend.seen) == 2)
        steer(socket, first)
        ended = (await until(socket, *LAST))[-1]["response"]
        assert ended["incomplete_details"] == {"reason": "steered"}
        assert [item["type"] for item in ended["output"]] == ["message"]
        assert ended["usage"]["input_tokens"] > 100 and ended["usage"]["output_tokens"] >= 10
        assert texts(await until(socket, *LAST)) == "Voila"


# Any place


PIECES: Final[dict[str, dict[str, Json]]] = {"text": {"content": "word "}, "reasoning": {"reasoning_content": "hm "}}


def deltas(kinds: Sequence[str]) -> list[dict[str, Json]]:
    """The deltas of an answer: a call is three of them."""
    found: list[dict[str, Json]] = []
    for number, kind in enumerate(kinds):
        if kind == "call":
            pieces = call_delta(number, '{"at', name="look"), call_delta(number, '":'), call_delta(number, "1}")
            found.extend(pieces)
        else:
            found.append(PIECES[kind])
    return found


@given(st.lists(st.sampled_from(["text", "reasoning", "call"]), min_size=1, max_size=5), st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck])
def test_wherever_a_steering_event_arrives_nothing_is_taken_back(kinds: list[str], data: st.DataObject) -> None:
    pieces = deltas(kinds)
    at = data.draw(st.integers(1, len(pieces)))
    asyncio.run(_steered_at(pieces, at))


async def _steered_at(pieces: Sequence[dict[str, Json]], at: int) -> None:
    accepted = asyncio.Event()

    async def script(connection: Connection) -> None:
        if accepted.is_set():
            await connection.send(HEAD, chat_chunk({"content": "Voila"}), chat_chunk({}, "stop"))
        else:
            await connection.send(HEAD, *[chat_chunk(delta) for delta in pieces[:at]])
            await accepted.wait()
            # Each may be the last one that is read.
            for delta in pieces[at:]:
                await connection.send(chat_chunk(delta))
                await asyncio.sleep(0)
            ends = "tool_calls" if any("tool_calls" in delta for delta in pieces) else "stop"
            await connection.send(chat_chunk({}, ends))
        await connection.send(chunk(b"data: [DONE]\n\n"), END)

    async with chat(script) as (gateway, _), connected(gateway) as socket:
        socket.create(tools=[TOOL])
        found = await until(socket, "response.created")
        first = found[0]["response"]["id"]
        steer(socket, first)
        found += await until(socket, "response.steer.accepted")
        accepted.set()
        found += [] if any(event["type"] in LAST for event in found) else await until(socket, *LAST)
        calls = [item for item in found[-1]["response"]["output"] if item["type"] == "function_call"]
        if calls:
            assert found[-1]["type"] == "response.completed"
            assert all(call["arguments"] == '{"at":1}' and call["status"] == "completed" for call in calls)
            [pending] = [checked(await socket.event())]
            assert [one["call_id"] for one in pending["required_input"]] == [call["call_id"] for call in calls]
        else:
            assert found[-1]["response"]["incomplete_details"] == {"reason": "steered"}
            _whole(await until(socket, *LAST), "Voila")
        _whole([event for event in found if event["type"] not in ABOUT], None)


def _whole(found: Sequence[dict[str, Any]], text: str | None) -> None:
    """Checks an answer: no event twice, one end, and its items say what its deltas did."""
    assert [event["sequence_number"] for event in found] == [*range(len(found))]
    assert [event["type"] in LAST for event in found].count(True) == 1
    ended = found[-1]["response"]
    assert found[0]["type"] == "response.created" and found[0]["response"]["id"] == ended["id"]
    added = [event["item"]["id"] for event in found if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert added == [item["id"] for item in done] and done == ended["output"]
    messages = [item for item in done if item["type"] == "message"]
    assert texts(found) == "".join(part["text"] for item in messages for part in item["content"])
    assert text is None or texts(found) == text
