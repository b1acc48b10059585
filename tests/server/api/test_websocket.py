"""Responses over WebSocket on real sockets: the events of SSE, lanes, what a connection remembers and may hold, and who
is let in."""

import asyncio
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import wsproto.connection
from wsproto.connection import ConnectionType
from wsproto.events import TextMessage

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.openai_responses.client.websocket import read_event
from gateway.core.conversation import Json
from gateway.dialects.websocket import ClientEvent
from gateway.server.api import websocket_session
from gateway.server.http import websocket_protocol
from gateway.server.http.websocket_messages import MessageReader, Received, Text
from gateway.server.state import connection_answers
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.test_keep_alive import comes_true
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import STALLED, Start, settings_for
from tests.server.http.test_websocket_messages import FIN, RSV1, deflated, frame
from tests.server.websocket_client import PATIENCE_S, Denied, Socket, connected, opened, same, texts, upgrade

PIECES: Final = ("text one ", "text two ", "call look {}", "usage 5 3", "finish")
PING: Final = b"\x89\x80\x00\x00\x00\x00"


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events(*PIECES), END)


async def echo(connection: Connection) -> None:
    """Says the last line of the prompt."""
    await connection.send(HEAD, events("text " + connection.body.decode().split("\n")[-1], "finish"), END)


async def posted(gateway: RunningGateway, **fields: Json) -> list[Any]:
    """The events of the same request over HTTP."""
    body = {"model": "m", "store": False, "stream": True, **fields}
    response = await gateway.client.post("/v1/responses", json=body)
    return [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]


class Gate:
    """A script that says the last line of the prompt once it is let go on."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = 0

    async def script(self, connection: Connection) -> None:
        self.begun += 1
        said = connection.body.decode().split("\n")[-1]
        await connection.send(HEAD, events("text begun"))
        await self.open.wait()
        await connection.send(events(f"text {said}", "finish"), END)


async def test_the_events_are_those_of_a_stream_and_the_first_one_has_its_headers(start: Start) -> None:
    gateway, _ = await start(well)
    async with connected(gateway) as socket:
        socket.create()
        found = await socket.answer()
        assert same(found) == same(await posted(gateway, input="Hello"))
        assert found[0]["headers"]["x-dragoman-backend"] == "plain"
        assert found[0]["headers"]["x-request-id"].startswith("req_")
        assert not any("headers" in event for event in found[1:])
        assert not any("stream_id" in event for event in found)


async def test_a_change_is_told_in_the_headers_of_the_first_event(start: Start) -> None:
    gateway, _ = await start(well)
    tool: Json = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    async with connected(gateway, "x-dragoman-explain: 1") as socket:
        socket.create(tools=[tool])
        found = await socket.answer()
    assert found[0]["headers"]["x-dragoman-changes"] == "encode=1"
    assert [one["rule"] for one in found[-1]["response"]["dragoman"]["diagnostics"]][:1] == ["TOOLS_NOT_OFFERED"]


async def test_a_lane_is_served_in_order_and_lanes_beside_each_other(start: Start) -> None:
    gate = Gate()
    gateway, backend = await start(gate.script)
    async with connected(gateway) as socket:
        for lane, text in (("a", "first"), ("a", "second"), ("b", "third")):
            socket.create(text, stream_id=lane)
        assert await comes_true(lambda: gate.begun == 2)
        gate.open.set()
        told: dict[str, list[Any]] = {"a": [], "b": []}
        while sum(event["type"] == "response.completed" for one in told.values() for event in one) < 3:
            event = await socket.event()
            told[event["stream_id"]].append(event)
    assert texts(told["a"]) == "begunfirstbegunsecond" and texts(told["b"]) == "begunthird"
    assert [event["type"] for event in told["a"]].index("response.completed") == len(told["a"]) // 2 - 1
    assert len(backend.seen) == 3


async def test_an_answer_that_is_not_stored_is_continued_on_its_connection_alone(start: Start) -> None:
    gateway, backend = await start(echo)
    async with connected(gateway) as socket, connected(gateway) as other:
        socket.create("one")
        first = (await socket.answer())[-1]["response"]
        assert first["store"] is False
        socket.create("two", previous_response_id=first["id"], stream_id="fork")
        second = (await socket.answer())[-1]["response"]
        assert backend.seen[-1][1] == b"inner\none\none\ntwo"
        socket.create("three", previous_response_id=second["id"])
        await socket.answer()
        assert backend.seen[-1][1] == b"inner\none\none\ntwo\ntwo\nthree"
        other.create("two", previous_response_id=first["id"])
        [refused] = await other.answer()
        assert (refused["status"], refused["error"]["code"]) == (400, "previous_response_not_found")
    assert (await gateway.client.get(f"/v1/responses/{first['id']}")).status_code == 404


async def test_what_a_failed_request_continued_is_forgotten_and_what_continues_it_already_is_not(start: Start) -> None:
    """Open Responses, "WebSocket Continuation": an error evicts the referenced response from the connection."""
    refusing = False

    async def script(connection: Connection) -> None:
        await (connection.send(answer("503 Busy", b"later")) if refusing else echo(connection))

    gateway, backend = await start(script)
    async with connected(gateway) as socket:
        socket.create("one")
        first = (await socket.answer())[-1]["response"]
        socket.create("two", previous_response_id=first["id"])
        second = (await socket.answer())[-1]["response"]
        refusing = True
        socket.create("three", previous_response_id=first["id"])
        assert [event["status"] for event in await socket.answer()] == [503]
        refusing = False
        socket.create("three", previous_response_id=first["id"])
        [refused] = await socket.answer()
        assert (refused["status"], refused["error"]["code"]) == (400, "previous_response_not_found")
        socket.create("three", previous_response_id=second["id"])
        assert texts(await socket.answer()) == "three"
        assert backend.seen[-1][1] == b"inner\none\none\ntwo\ntwo\nthree"


async def test_a_stored_answer_outlives_a_failed_request_that_continued_it(start: Start) -> None:
    gateway, backend = await start(echo)
    async with connected(gateway) as socket:
        socket.create("one", store=True)
        first = (await socket.answer())[-1]["response"]
        socket.create("two", previous_response_id=first["id"], temperature="hot")
        assert [event["status"] for event in await socket.answer()] == [400]
        socket.create("two", previous_response_id=first["id"])
        assert texts(await socket.answer()) == "two"
        assert backend.seen[-1][1] == b"inner\none\none\ntwo"


async def test_an_answer_that_is_stored_is_continued_anywhere(start: Start) -> None:
    gateway, backend = await start(echo)
    async with connected(gateway) as socket:
        socket.create("one", store=True)
        first = (await socket.answer())[-1]["response"]
        assert first["store"] is True
        assert (await gateway.client.get(f"/v1/responses/{first['id']}")).status_code == 200
        socket.create("two", previous_response_id=first["id"])
        second = (await socket.answer())[-1]["response"]
        socket.create("three", previous_response_id=second["id"])
        await socket.answer()
    assert backend.seen[-1][1] == b"inner\none\none\ntwo\ntwo\nthree"


async def test_what_continues_an_answer_that_is_not_stored_is_not_called_stored(start: Start) -> None:
    """Nobody else could continue it: a part of its history is in the connection alone."""
    gateway, _ = await start(echo)
    async with connected(gateway, "x-dragoman-explain: 1") as socket:
        socket.create("one")
        first = (await socket.answer())[-1]["response"]
        socket.create("two", store=True, previous_response_id=first["id"])
        second = (await socket.answer())[-1]["response"]
        assert second["store"] is False
        assert "RESPONSE_NOT_STORED" in [one["rule"] for one in second["dragoman"]["diagnostics"]]
        socket.create("three", previous_response_id=second["id"])
        assert (await socket.answer())[-1]["type"] == "response.completed"
    assert (await gateway.client.get(f"/v1/responses/{second['id']}")).status_code == 404


async def test_what_may_not_be_stored_is_remembered_by_the_connection(start: Start) -> None:
    gateway, backend = await start(echo)
    async with connected(gateway, "x-dragoman-state: off", "x-dragoman-explain: 1") as socket:
        socket.create("one", store=True)
        first = (await socket.answer())[-1]["response"]
        assert first["store"] is False
        assert "RESPONSE_NOT_STORED" in [one["rule"] for one in first["dragoman"]["diagnostics"]]
        socket.create("two", previous_response_id=first["id"])
        assert (await socket.answer())[-1]["type"] == "response.completed"
    assert backend.seen[-1][1] == b"inner\none\none\ntwo"


async def test_a_request_that_generates_nothing_prepares_the_next_one(start: Start) -> None:
    gateway, backend = await start(echo)
    async with connected(gateway) as socket:
        socket.create([], generate=False)
        warmed = await socket.answer()
        assert [event["type"] for event in warmed] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        response = warmed[-1]["response"]
        assert response["output"] == [] and response["usage"]["total_tokens"] == 0
        assert backend.seen == []
        socket.create("one", previous_response_id=response["id"], generate=True)
        assert texts(await socket.answer()) == "one"
        assert backend.seen[0][1] == b"inner\none"
        # Over HTTP there is no such field.
        assert texts(await posted(gateway, input="two", generate=False)) == "two"


async def test_the_oldest_answers_are_forgotten_and_too_long_a_history_is_not_remembered(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_answers, "MOST_BYTES", 7_000)
    gateway, _ = await start(echo)
    async with connected(gateway, "x-dragoman-explain: 1") as socket:
        found = []
        for _ in range(5):
            socket.create("x" * 1000)
            found.append((await socket.answer())[-1]["response"]["id"])
        socket.create("again", previous_response_id=found[0])
        [refused] = await socket.answer()
        assert refused["error"]["code"] == "previous_response_not_found"
        socket.create("again", previous_response_id=found[-1])
        assert (await socket.answer())[-1]["type"] == "response.completed"
        socket.create("x" * 8_000)
        response = (await socket.answer())[-1]["response"]
        assert "RESPONSE_NOT_STORED" in [one["rule"] for one in response["dragoman"]["diagnostics"]]
        socket.create("again", previous_response_id=response["id"])
        assert (await socket.answer())[0]["error"]["code"] == "previous_response_not_found"


REFUSED: Final[dict[str, tuple[str, str, str | None]]] = {
    "no JSON": ("{", "invalid_json", None),
    "no object": ("[1]", "invalid_json", None),
    "deep": ('{"type": "response.create", "x": ' + "[" * 5000 + "]" * 5000 + "}", "invalid_json", None),
    "nothing": ("", "invalid_json", None),
    "an unknown type": ('{"type": "session.update"}', "invalid_value", "type"),
    "no type": ('{"model": "m"}', "invalid_value", "type"),
    "a type that is no text": ('{"type": 1}', "invalid_value", "type"),
    "a lane that is no text": ('{"type": "response.create", "stream_id": 1}', "invalid_value", "stream_id"),
    "a lane without a name": ('{"type": "response.create", "stream_id": ""}', "invalid_value", "stream_id"),
    "a lane with a long name": (
        json.dumps({"type": "response.create", "stream_id": "x" * 257}),
        "invalid_value",
        "stream_id",
    ),
    "no model": ('{"type": "response.create", "input": "x"}', "missing_required_parameter", "model"),
    "in the background": (
        '{"type": "response.create", "model": "m", "input": "x", "background": true}',
        "unsupported_parameter",
        "background",
    ),
    "generate is a text": (
        '{"type": "response.create", "model": "m", "input": "x", "generate": "no"}',
        "invalid_value",
        "generate",
    ),
    "an unknown model": ('{"type": "response.create", "model": "x", "input": "x"}', "model_not_found", None),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_an_event_that_cannot_be_served_is_an_error_and_the_connection_stays(start: Start, name: str) -> None:
    text, code, param = REFUSED[name]
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        socket.text(text)
        found = await socket.event()
        assert found["type"] == "error" and 400 <= found["status"] < 500
        error = found["error"]
        assert (error["code"], error["param"]) == (code, param) or (code == "model_not_found" and error["code"] == code)
        assert found["headers"] == error["headers"] and error["headers"]["x-request-id"]
        socket.send({"type": "response.processed", "response_id": "resp_1"})
        socket.create("well")
        assert texts(await socket.answer()) == "well"


async def test_an_error_has_the_lane_of_its_event(start: Start) -> None:
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        socket.create(stream_id="a", model="unknown")
        assert (await socket.event())["stream_id"] == "a"
        socket.send({"type": "unknown", "stream_id": "b"})
        assert (await socket.event())["stream_id"] == "b"


DOORS: Final[dict[str, tuple[bytes, int, str]]] = {
    "another origin": (upgrade("origin: https://example.com"), 403, "cross_site_request"),
    "another port": (upgrade("origin: http://localhost:1"), 403, "cross_site_request"),
    "no origin that can be told": (upgrade("origin: null"), 403, "cross_site_request"),
    "a file": (upgrade("origin: file://localhost"), 403, "cross_site_request"),
    "two origins": (upgrade("origin: http://localhost", "origin: http://localhost"), 400, "duplicate_header"),
    "another site": (upgrade("sec-fetch-site: cross-site"), 403, "cross_site_request"),
    "another host": (upgrade(host="evil.example"), 421, "unknown_host"),
    "another version": (
        upgrade().replace(b"version: 13", b"version: 8"),
        426,
        "unsupported_operation",
    ),
    "no nonce": (upgrade(key=""), 426, "unsupported_operation"),
    "a short nonce": (upgrade(key="AAAA"), 426, "unsupported_operation"),
    "a body": (upgrade("content-length: 5") + b"hello", 426, "unsupported_operation"),
    "another protocol": (upgrade().replace(b"upgrade: websocket", b"upgrade: h2c"), 426, "unsupported_operation"),
    "another path": (upgrade(path="/v1/chat/completions"), 405, "method_not_allowed"),
    "an unknown path": (upgrade(path="/v1/realtime"), 404, "unknown_url"),
    "another method": (upgrade().replace(b"GET", b"PUT", 1), 405, "method_not_allowed"),
}


@pytest.mark.parametrize("name", DOORS)
async def test_an_upgrade_that_is_not_accepted_is_refused_over_http(start: Start, name: str) -> None:
    head, status, code = DOORS[name]
    gateway, _ = await start(echo)
    found = await opened(gateway, head)
    assert isinstance(found, Denied)
    assert (found.status, found.code) == (status, code)
    if status == 426:
        assert found.headers["upgrade"] == "websocket" and found.headers["sec-websocket-version"] == "13"


async def test_a_page_of_the_gateway_may_open_one(start: Start) -> None:
    gateway, _ = await start(echo)
    async with connected(gateway, "origin: http://localhost", "sec-fetch-site: same-origin") as socket:
        socket.create("well")
        assert texts(await socket.answer()) == "well"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text("alice:a-key\nbob:b-key\n")
    return path


async def with_keys(keys: Path, base_url: str, **entries: Json) -> dict[str, Json]:
    return {**settings_for(base_url, api_keys_file=str(keys)), "keys": entries}


async def test_a_key_is_asked_for_before_the_upgrade_and_never_read_from_the_query(keys: Path) -> None:
    async with faulty_backend(echo) as backend, running_gateway(await with_keys(keys, backend.base_url)) as gateway:
        for head in (
            upgrade(),
            upgrade("authorization: Bearer wrong"),
            upgrade(path="/v1/responses?api_key=a-key&key=a-key&authorization=Bearer%20a-key"),
        ):
            found = await opened(gateway, head)
            assert isinstance(found, Denied) and (found.status, found.code) == (401, "invalid_api_key")
            assert found.headers["www-authenticate"] == "Bearer"
        async with connected(gateway, "authorization: Bearer a-key") as socket:
            socket.create("well")
            assert texts(await socket.answer()) == "well"


async def test_each_event_counts_for_its_key_and_needs_its_models(keys: Path) -> None:
    async with faulty_backend(echo) as backend:
        settings = await with_keys(keys, backend.base_url, alice={"requests_per_minute": 3, "models": ["m"]})
        async with running_gateway(settings) as gateway, connected(gateway, "authorization: Bearer a-key") as socket:
            socket.create("one")
            assert texts(await socket.answer()) == "one"
            socket.create("one", model="n")
            [refused] = await socket.answer()
            assert refused["error"]["code"] == "model_not_allowed"
            socket.create([], generate=False)
            assert (await socket.answer())[-1]["type"] == "response.completed"
            socket.create("four")
            [refused] = await socket.answer()
            assert (refused["status"], refused["error"]["code"]) == (429, "rate_limit_exceeded")
            assert int(refused["headers"]["retry-after"]) > 0


async def test_a_key_that_a_reload_removes_ends_the_connection_at_the_next_event(keys: Path) -> None:
    async with faulty_backend(echo) as backend:
        settings = await with_keys(keys, backend.base_url)
        async with running_gateway(settings) as gateway, connected(gateway, "authorization: Bearer a-key") as socket:
            socket.create("one")
            await socket.answer()
            keys.write_text("bob:b-key\nmallory:a-key\n")  # noqa: ASYNC240 (a few bytes)
            await gateway.app.gateway_state.change(read_settings(settings))
            socket.create("two")
            assert (await socket.event())["error"]["code"] == "invalid_api_key"
            assert await socket.closed() == 1008
        assert len(backend.seen) == 1


async def test_a_connection_has_so_many_lanes_and_waiting_events(start: Start) -> None:
    gate = Gate()
    gateway, _ = await start(gate.script, max_body_mb=1)
    async with connected(gateway) as socket:
        for number in range(8):
            socket.create(stream_id=f"lane {number}")
        socket.create(stream_id="one more")
        await _refused_for(socket, "one more", "8 lanes")
        for _ in range(16):
            socket.create(stream_id="lane 0")
        socket.create(stream_id="lane 1")
        await _refused_for(socket, "lane 1", "16 waiting requests")
        gate.open.set()
        done = 0
        async for event in socket.events():
            done += event["type"] == "response.completed"
            if done == 24:
                break
        # The lanes are free again.
        socket.create("after", stream_id="one more")
        assert texts(await socket.answer()) == "begunafter"


async def test_what_comes_at_once_may_be_as_much_as_what_comes_one_by_one(start: Start) -> None:
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        event: dict[str, Json] = {"type": "response.create", "model": "m", "store": False, "input": "Hello"}
        lanes = [f"lane {number % 8}" for number in range(24)]
        sent = [TextMessage(json.dumps({**event, "stream_id": lane})) for lane in lanes]
        socket.write(b"".join(map(socket.connection.send, sent)))
        ends = [(await socket.answer())[-1]["type"] for _ in lanes]
    assert ends == ["response.completed"] * 24


async def test_what_waits_is_no_larger_than_one_request_may_be(start: Start) -> None:
    gate = Gate()
    gateway, _ = await start(gate.script, max_body_mb=1)
    async with connected(gateway) as socket:
        socket.create()
        for _ in range(2):
            socket.create("x" * 600_000)
        await _refused_for(socket, None, "max_body_mb")
        gate.open.set()
        await socket.answer()
        await socket.answer()


async def _refused_for(socket: Socket, lane: str | None, why: str) -> None:
    async for event in socket.events():
        if event["type"] == "error":
            assert (event["status"], event["error"]["code"], event.get("stream_id")) == (503, "overloaded", lane)
            assert why in event["error"]["message"] and event["headers"]["retry-after"] == "1"
            return


async def test_what_is_no_message_is_an_error_and_the_end(start: Start) -> None:
    gateway, _ = await start(echo, max_body_mb=1)
    for data, code, error in (
        (b"\x82\x81\x00\x00\x00\x00x", 1003, "invalid_value"),
        (b"\x81\x01x", 1002, "invalid_value"),
        (b"\x81\xff\x00\x00\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00" + b"x" * 0x200000, 1009, "request_too_large"),
    ):
        async with connected(gateway) as socket:
            socket.write(data)
            found = await socket.event()
            assert (found["type"], found["error"]["code"]) == ("error", error)
            assert await socket.closed() == code


async def test_a_message_that_inflates_without_end_is_not_read(start: Start) -> None:
    gateway, _ = await start(echo, max_body_mb=1)
    async with connected(gateway, deflate=True) as socket:
        socket.create("x" * 500_000)
        assert len(texts(await socket.answer())) == 500_000
        socket.create("x" * (8 << 20))
        assert (await socket.event())["error"]["code"] == "request_too_large"
        assert await socket.closed() == 1009


async def test_a_message_that_does_not_arrive_in_time_ends_the_connection(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_protocol, "BODY_S", 0.2)
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        socket.write(b"\x01\x81\x00\x00\x00\x00x")
        assert (await socket.event())["type"] == "error"
        assert await socket.closed() == 1008


async def test_pings_are_answered_and_frames_behind_the_head_are_read(start: Start) -> None:
    gateway, _ = await start(echo)
    body = json.dumps({"type": "response.create", "model": "m", "input": "at once"})
    frames = wsproto.connection.Connection(ConnectionType.CLIENT).send(TextMessage(body)) + PING
    socket = await opened(gateway, upgrade(), more=frames)
    assert isinstance(socket, Socket)
    assert texts(await socket.answer()) == "at once"
    assert socket.pongs == 1
    socket.close()
    assert await socket.closed() == 1000
    socket.kill()


async def test_a_ping_that_crosses_the_close_of_the_gateway_is_no_fault(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(websocket_session, "IDLE_S", 0.2)
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        assert await socket.closed() == 1001
        socket.write(PING)
        await asyncio.sleep(0.1)
    assert "data_received" not in caplog.text


async def test_what_was_read_inflates_no_faster_than_it_is_served(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read may bring hundreds of small messages, each of which inflates to a megabyte."""
    told, served = 0, threading.Event()

    class Counting(MessageReader):
        def feed(self, data: bytes) -> Iterator[Received]:
            nonlocal told
            for received in super().feed(data):
                told += isinstance(received, Text)
                yield received

    def slow(text: str) -> ClientEvent:
        served.wait(PATIENCE_S)
        return read_event(text)

    monkeypatch.setattr(websocket_protocol, "MessageReader", Counting)
    monkeypatch.setattr(OpenAIResponsesDialect, "read_event", staticmethod(slow))
    gateway, _ = await start(echo)
    async with connected(gateway, deflate=True) as socket:
        event = json.dumps({"type": "response.processed", "x": "x" * 1_000_000})
        bomb = frame(FIN | RSV1 | 0x01, deflated(event.encode()))
        socket.write(bomb * 150)
        assert await comes_true(lambda: told > 1)
        await asyncio.sleep(0.3)
        most = told
        served.set()
        socket.create("at last")
        assert texts(await socket.answer()) == "at last"
    # What one piece has, and not what one read brought.
    assert most <= websocket_protocol.MOST_UNTAKEN + websocket_protocol.SLICE // len(bomb) and told == 151


async def test_a_keep_alive_of_the_stream_is_a_ping(start: Start) -> None:
    gate = Gate()

    async def silent(connection: Connection) -> None:
        await gate.open.wait()
        await connection.send(HEAD, events("text late", "finish"), END)

    gateway, _ = await start(silent, first_event_gate_s=0.1, sse_ping_s=0.1)
    async with connected(gateway) as socket:
        socket.create()
        reading = asyncio.create_task(socket.answer())
        assert await comes_true(lambda: socket.pings >= 2)
        gate.open.set()
        found = await reading
        assert found[0]["headers"]["x-request-id"] and texts(found) == "late"


async def test_a_connection_without_anything_is_closed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_session, "IDLE_S", 0.4)
    gate = Gate()
    gateway, _ = await start(gate.script)
    async with connected(gateway) as idle, connected(gateway) as pinging, connected(gateway) as busy:
        busy.create()
        reading = asyncio.create_task(idle.closed())
        while not reading.done():
            pinging.write(PING)
            await asyncio.sleep(0.05)
        assert await reading == 1001
        gate.open.set()
        assert texts(await busy.answer()) == "begunHello"
        pinging.create("still here")
        assert texts(await pinging.answer()) == "begunstill here"


async def test_a_connection_ends_after_its_time_behind_its_running_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_session, "LIFE_S", 0.3)
    gate = Gate()
    gateway, _ = await start(gate.script)
    async with connected(gateway) as socket, connected(gateway) as idle:
        socket.create()
        assert (await idle.event())["error"]["code"] == "websocket_connection_limit_reached"
        assert await idle.closed() == 1001
        socket.create(stream_id="late")
        async for event in socket.events():
            if event["type"] == "error":
                assert event["error"]["code"] == "websocket_connection_limit_reached"
                assert (event["status"], event["stream_id"]) == (400, "late")
                break
        gate.open.set()
        assert texts(await socket.answer()) == "Hello"
        assert (await socket.event())["error"]["code"] == "websocket_connection_limit_reached"
        assert await socket.closed() == 1001


async def test_a_stop_lets_the_running_answers_finish(start: Start) -> None:
    gate = Gate()
    gateway, _ = await start(gate.script)
    async with connected(gateway) as socket, connected(gateway) as idle:
        for lane in ("a", "a", "b"):
            socket.create(stream_id=lane)
        assert await comes_true(lambda: gate.begun == 2)
        gateway.app.gateway_state.drain()
        assert await idle.closed() == 1001
        refused = await opened(gateway, upgrade())
        assert isinstance(refused, Denied) and refused.code == "server_shutdown"
        gate.open.set()
        ends = [event async for event in socket.events() if event["type"] in ("response.completed", "error")]
        told = [(event["stream_id"], event.get("error", {}).get("code", "")) for event in ends]
        assert sorted(told) == [("a", ""), ("a", "server_shutdown"), ("b", "")]
        assert socket.code == 1001


async def test_a_stop_at_once_is_told_in_every_answer(start: Start) -> None:
    gate = Gate()
    gateway, _ = await start(gate.script)
    async with connected(gateway) as socket:
        socket.create(stream_id="a")
        socket.create(stream_id="b")
        assert await comes_true(lambda: gate.begun == 2)
        gateway.app.gateway_state.drain()
        gateway.app.gateway_state.stop()
        failed = [event async for event in socket.events() if event["type"] == "response.failed"]
        assert sorted(event["stream_id"] for event in failed) == ["a", "b"]
        assert socket.code == 1001
        gate.open.set()


@pytest.mark.parametrize("count", range(1, 11))
async def test_a_client_that_is_killed_at_any_event_ends_the_backends_answer(
    start: Start, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    async def endless(connection: Connection) -> None:
        await connection.send(HEAD, events("text one", "text two", "call look {}"))
        await connection.gone()

    caplog.set_level(logging.INFO)
    gateway, backend = await start(endless)
    async with connected(gateway) as socket:
        socket.create(stream_id="a")
        socket.create("waits", stream_id="a")
        for _ in range(count):
            await socket.event()
    async with asyncio.timeout(20):
        await backend.closed.wait()
    assert await comes_true(lambda: "code=client_gone" in caplog.text)
    assert len(backend.seen) == 1
    assert not gateway.app.gateway_state.websockets or await comes_true(
        lambda: not gateway.app.gateway_state.websockets
    )


@pytest.mark.parametrize("count", range(len(PIECES)))
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_backend_that_is_cut_at_any_event_is_told_as_in_a_stream(start: Start, count: int, how: str) -> None:
    async def cut(connection: Connection) -> None:
        await connection.send(HEAD, *[events(piece) for piece in PIECES[:count]])
        # A reset overtakes what was sent: the gateway has read it before.
        await asyncio.sleep(0.05 if how == "reset" else 0)
        connection.reset() if how == "reset" else connection.close()

    gateway, _ = await start(cut, STALLED)
    async with connected(gateway) as socket:
        socket.create(stream_id="a")
        found = [await socket.event()]
        while found[-1]["type"] != "response.failed" and "status" not in found[-1]:
            found.append(await socket.event())
        kinds = [event["type"] for event in found]
        assert "response.completed" not in kinds and "error" in kinds
        assert all(event["stream_id"] == "a" for event in found)
        assert same([{**event, "stream_id": None} for event in found if "status" not in event]) == same(
            [{**event, "stream_id": None} for event in await posted(gateway, input="Hello") if "type" in event]
        )
        # The connection goes on.
        socket.send({"type": "unknown"})
        assert (await socket.event())["error"]["param"] == "type"


async def test_a_failure_before_the_answer_has_its_status_and_headers(start: Start) -> None:
    async def busy(connection: Connection) -> None:
        await connection.send(answer("429 Too Many", b"slow down"))

    gateway, _ = await start(busy)
    async with connected(gateway) as socket:
        socket.create()
        [found] = await socket.answer()
        assert (found["type"], found["status"]) == ("error", 429)
        assert found["headers"]["x-request-id"].startswith("req_")


async def test_a_client_that_reads_nothing_holds_the_backend_back_and_is_cut(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    sent = 0

    async def much(connection: Connection) -> None:
        nonlocal sent
        piece = events(*["text " + "x" * 1000] * 100)
        await connection.send(HEAD)
        for _ in range(2000):
            await connection.send(piece)
            sent += len(piece)

    caplog.set_level(logging.INFO)
    gateway, backend = await start(much, write_timeout_s=1)
    async with connected(gateway) as socket:
        socket.create()
        async with asyncio.timeout(30):
            await backend.closed.wait()
    # What fits into the buffers of two sockets, not the 200 MB.
    assert sent < 50 << 20
    assert await comes_true(lambda: "code=client_gone" in caplog.text)


async def test_a_client_that_reads_nothing_does_not_keep_a_connection_that_is_closed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one with so few unsent bytes that its buffer is not full."""
    opened: list[websocket_protocol.WebSocketProtocol] = []
    begin = websocket_protocol.WebSocketProtocol.begin

    def beginning(self: websocket_protocol.WebSocketProtocol, rest: bytes) -> None:
        opened.append(self)
        begin(self, rest)

    monkeypatch.setattr(websocket_protocol.WebSocketProtocol, "begin", beginning)
    monkeypatch.setattr(websocket_protocol, "CLOSE_S", 0.1)
    gateway, _ = await start(echo, write_timeout_s=1)
    _, writer = await asyncio.open_connection(gateway.host, gateway.port, limit=1)
    writer.write(upgrade())
    assert await comes_true(lambda: bool(gateway.app.gateway_state.websockets))
    [websocket] = opened
    while not websocket._transport.get_write_buffer_size():
        websocket.write([b"x" * 1000])
    assert not websocket.flow.write_paused
    websocket.close(1001, "")
    assert await comes_true(lambda: not gateway.server.server_state.connections, 10)
    writer.close()


async def test_each_request_and_the_upgrade_have_a_line_in_the_log(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    gateway, _ = await start(echo)
    async with connected(gateway) as socket:
        socket.create("one")
        await socket.answer()
        assert "gateway_open_websockets 1" in (await gateway.client.get("/metrics")).text
    assert await comes_true(lambda: not gateway.app.gateway_state.websockets)
    assert "gateway_open_websockets 0" in (await gateway.client.get("/metrics")).text
    assert await comes_true(lambda: "POST /v1/responses" in caplog.text)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("GET /v1/responses" in line and "status=101" in line for line in lines) == 1
    assert sum("POST /v1/responses" in line and "status=200" in line for line in lines) == 1
    metrics = (await gateway.client.get("/metrics")).text
    assert re.search(r'gateway_requests_total{[^}]*route="chat",status="200"} 1', metrics)


async def test_an_accepted_upgrade_has_its_id(start: Start) -> None:
    gateway, _ = await start(echo)
    socket = await opened(gateway, upgrade("x-request-id: mine"))
    assert isinstance(socket, Socket)
    assert socket.headers["x-request-id"] == "mine"
    socket.kill()


async def test_the_inspector_shows_the_request_as_a_post(start: Start, tmp_path: Path) -> None:
    async with faulty_backend(echo) as backend:
        settings: dict[str, Json] = {**settings_for(backend.base_url), "inspector": {"record": str(tmp_path / "kept")}}
        async with running_gateway(settings) as gateway, connected(gateway) as socket:
            socket.create("one")
            first = (await socket.answer())[-1]["response"]
            socket.create("two", previous_response_id=first["id"])
            await socket.answer()
            shown = (await gateway.client.get("/inspect/api/requests")).json()
            assert [one["path"] for one in shown["requests"] if one["path"] == "/v1/responses"]
    kept = "".join(path.read_text() for path in (tmp_path / "kept").rglob("*.jsonl"))
    assert kept.count('"method":"POST","path":"/v1/responses"') == 2
    assert len(re.findall(r'"kind":"end","x":\d,"status":200', kept)) == 2
