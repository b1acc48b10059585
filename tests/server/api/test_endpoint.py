"""Tests the chat route with a scripted backend on real sockets: good responses and every fault of the table."""

import asyncio
import gc
import json
import socket
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.exchange import Exchange
from gateway.server.api.responders import StreamResponder
from gateway.server.upstream.deadlines import Deadlines
from gateway.testing.gateway import hello, running_gateway
from tests.server.backend import END, HEAD, Connection, Script, answer, chunk, events, faulty_backend
from tests.server.conftest import HASTY, PATIENT, STALLED, Start, settings_for

STREAM: Final[dict[str, Json]] = {"stream": True}
# Sooner than any limit of time would do it. How soon: tests/promises/test_client_disconnects.py.


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("start", "text Hel", "text lo"), events("finish"), END)


def frames(text: str) -> list[str]:
    """The data of every event."""
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


async def test_whole_answer(start: Start) -> None:
    gateway, backend = await start(well)
    response = await gateway.chat()
    assert response.status_code == 200
    body = response.json()
    assert body["model"] == "m"
    assert body["choices"][0]["message"]["content"] == "Hello"
    assert response.headers["x-dragoman-backend"] == "plain"
    head, sent = backend.seen[0]
    assert sent == b"inner\nHello"
    assert b"user-agent: dragoman/" in head.lower()
    assert b"accept-encoding: identity" in head.lower()


async def test_streamed_answer(start: Start) -> None:
    gateway, _ = await start(well)
    response = await gateway.chat(**STREAM)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    *chunks, done = frames(response.text)
    assert done == "[DONE]"
    deltas = [json.loads(data)["choices"][0] for data in chunks]
    assert "".join(delta["delta"].get("content", "") for delta in deltas) == "Hello"
    assert [delta["finish_reason"] for delta in deltas if delta["finish_reason"]] == ["stop"]


async def test_connections_to_the_backend_are_used_again(start: Start) -> None:
    used: set[Connection] = set()

    async def script(connection: Connection) -> None:
        used.add(connection)
        await well(connection)

    gateway, _ = await start(script)
    for fields in ({}, STREAM, {}):
        assert (await gateway.chat(**fields)).status_code == 200
    assert len(used) == 1


async def test_answer_ends_though_the_backend_holds_its_socket(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text done", "finish"))
        await connection.gone()

    gateway, backend = await start(script, {**PATIENT, "idle": 120, "total": 120})
    async with asyncio.timeout(30):
        assert frames((await gateway.chat(**STREAM)).text)[-1] == "[DONE]"
        await backend.closed.wait()


def replying(*pieces: bytes, reset: bool = False, hold: bool = False) -> Script:
    """A backend that sends these pieces and then hangs up, resets or holds on."""

    async def script(connection: Connection) -> None:
        await connection.send(*pieces)
        if hold:
            await connection.gone()
        elif reset:
            connection.reset()
        else:
            connection.writer.close()

    return script


GZIP: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\nxxxx"

EARLY: Final[dict[str, tuple[Script, int, str]]] = {
    "closes before the head": (replying(), 502, "upstream_connection_error"),
    "resets before the head": (replying(reset=True), 502, "upstream_connection_error"),
    "garbage instead of a head": (replying(b"what is this\r\n\r\n"), 502, "upstream_protocol_error"),
    "a flood of headers": (
        replying(b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: y\r\n" % i for i in range(9000)) + b"\r\n"),
        502,
        "upstream_protocol_error",
    ),
    "an endless header": (
        replying(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n"),
        502,
        "upstream_protocol_error",
    ),
    "half a status line": (replying(b"HTTP/1.1 2", hold=True), 504, "upstream_timeout"),
    "silence": (replying(hold=True), 504, "upstream_timeout"),
    "silence after the head": (replying(HEAD, hold=True), 504, "upstream_timeout"),
    "comments only": (replying(HEAD, chunk(b": still here\n\n"), hold=True), 504, "upstream_timeout"),
    "a redirect": (replying(answer("307 x", b"", b"location: http://127.0.0.1:1/")), 502, "upstream_redirect"),
    "HTML": (replying(answer("200 OK", b"<p>", b"content-type: text/html")), 502, "upstream_invalid_response"),
    "gzip that is none": (replying(GZIP), 502, "upstream_stream_truncated"),
    "a bad chunk size": (replying(HEAD, b"zz\r\n"), 502, "upstream_stream_truncated"),
    "a cut chunk": (replying(HEAD, b"ff\r\ndata: te"), 502, "upstream_stream_truncated"),
    "an empty body": (replying(HEAD, END), 502, "upstream_stream_truncated"),
    "a malformed event": (replying(HEAD, events("nonsense"), END), 502, "upstream_invalid_event"),
    "an error event": (replying(HEAD, events("error out of order"), END), 502, "upstream_error"),
    "an error after an empty start": (
        replying(HEAD, events("start"), events("error out of order"), END),
        502,
        "upstream_error",
    ),
    "a bug of ours": (replying(HEAD, events("bug"), END), 500, "internal_error"),
    "status 400": (replying(answer("400 x", b"no")), 400, "upstream_error"),
    "status 500": (replying(answer("500 x", b"no")), 500, "upstream_error"),
    "an error status whose body breaks off": (
        replying(b"HTTP/1.1 429 x\r\ncontent-length: 99\r\n\r\nslow down"),
        429,
        "upstream_error",
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", EARLY)
async def test_faults_before_the_first_byte_are_statuses(start: Start, name: str, stream: bool) -> None:
    script, status, code = EARLY[name]
    gateway, backend = await start(script, HASTY if code == "upstream_timeout" else PATIENT)
    response = await gateway.chat(stream=stream)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.headers["x-request-id"]
    assert len(backend.seen) == 1
    assert gateway.app.gateway_state.scheduler.size == 0


LATE: Final[dict[str, tuple[Script, str]]] = {
    "is done before it has finished": (
        replying(HEAD, events("text one"), events("vanish")),
        "upstream_stream_truncated",
    ),
    "closes": (replying(HEAD, events("text one")), "upstream_stream_truncated"),
    "resets": (replying(HEAD, events("text one"), reset=True), "upstream_stream_truncated"),
    "ends without finish": (replying(HEAD, events("text one"), END), "upstream_stream_truncated"),
    "a cut event": (replying(HEAD, events("text one"), chunk(b"data: tex"), END), "upstream_stream_truncated"),
    "a bad chunk": (replying(HEAD, events("text one"), b"zz\r\n"), "upstream_stream_truncated"),
    "stalls": (replying(HEAD, events("text one"), hold=True), "upstream_timeout"),
    "a malformed event": (replying(HEAD, events("text one"), events("nonsense"), END), "upstream_invalid_event"),
    "an error event": (replying(HEAD, events("text one"), events("error no more"), END), "upstream_error"),
    "a bug of ours": (replying(HEAD, events("text one"), events("bug"), END), "internal_error"),
}


def slowly(script: Script) -> Script:
    """The same pieces, each in a read of its own."""

    async def paced(connection: Connection) -> None:
        send = connection.send

        async def send_one_by_one(*pieces: bytes) -> None:
            for piece in pieces:
                await send(piece)
                await asyncio.sleep(0.12)

        connection.send = send_one_by_one  # type: ignore[method-assign]  # this one connection is slower
        await script(connection)

    return paced


@pytest.mark.parametrize("name", LATE)
async def test_faults_after_the_first_byte_are_one_error_frame(start: Start, name: str) -> None:
    script, code = LATE[name]
    gateway, backend = await start(slowly(script), STALLED if code == "upstream_timeout" else PATIENT)
    response = await gateway.chat(**STREAM)
    assert response.status_code == 200
    *before, last = frames(response.text)
    assert json.loads(last)["error"]["code"] == code
    assert "one" in before[-1]
    assert "[DONE]" not in response.text
    assert all(json.loads(data)["choices"][0]["finish_reason"] is None for data in before)
    assert response.text.count('"error"') == 1
    assert len(backend.seen) == 1


@pytest.mark.parametrize("name", LATE)
async def test_the_same_faults_spoil_a_whole_answer(start: Start, name: str) -> None:
    script, code = LATE[name]
    gateway, _ = await start(slowly(script), STALLED if code == "upstream_timeout" else PATIENT)
    response = await gateway.chat()
    assert response.status_code in (500, 502, 504)
    assert response.json()["error"]["code"] == code


async def test_comments_do_not_count_as_progress(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text one"))
        while True:
            await connection.send(chunk(b": still here\n\n"))
            await asyncio.sleep(0.05)

    gateway, _ = await start(script, {**STALLED, "total": 120})
    async with asyncio.timeout(30):
        response = await gateway.chat(**STREAM)
    assert json.loads(frames(response.text)[-1])["error"]["code"] == "upstream_timeout"


async def test_total_deadline_ends_even_a_busy_stream(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD)
        while True:
            await connection.send(events("text x"))
            await asyncio.sleep(0.05)

    async with faulty_backend(script) as backend:
        settings = settings_for(backend.base_url)
        settings["backends"] = {
            "plain": {
                "adapter": "tests.server.plain:PlainAdapter",
                "base_url": backend.base_url,
                "timeouts": {"total": 0.4},
            }
        }
        async with running_gateway(settings) as gateway:
            response = await gateway.chat(**STREAM)
    assert json.loads(frames(response.text)[-1])["error"]["code"] == "upstream_timeout"


async def test_an_answer_that_is_too_large(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD)
        while True:
            await connection.send(events("text " + "x" * 100_000))

    async with faulty_backend(script) as backend:
        settings: dict[str, Json] = {**settings_for(backend.base_url), "limits": {"max_response_mb": 1}}
        async with running_gateway(settings) as gateway:
            whole = await gateway.chat()
            streamed = await gateway.chat(**STREAM)
    assert (whole.status_code, whole.json()["error"]["code"]) == (502, "upstream_response_too_large")
    assert json.loads(frames(streamed.text)[-1])["error"]["code"] == "upstream_response_too_large"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_backend_that_cannot_be_reached(stream: bool) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        async with running_gateway(settings_for(f"http://127.0.0.1:{deaf.getsockname()[1]}")) as gateway:
            response = await gateway.chat(stream=stream)
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_connection_error")


async def test_a_backend_without_tls() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no tls here\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with running_gateway(settings_for(f"https://127.0.0.1:{port}")) as gateway:
            response = await gateway.chat()
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_tls_error")
    assert response.headers["x-should-retry"] == "false"


async def test_a_whole_answer_may_take_longer_than_the_first_byte_of_a_stream(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await asyncio.sleep(0.9)
        await connection.send(HEAD, events("text one", "finish"), END)

    gateway, _ = await start(script, {**PATIENT, "first_byte": 0.3})
    whole, streamed = await asyncio.gather(gateway.chat(), gateway.chat(stream=True))
    assert whole.json()["choices"][0]["message"]["content"] == "one"
    assert (streamed.status_code, streamed.json()["error"]["code"]) == (504, "upstream_timeout")


ENDED_BY: Final[dict[str, tuple[Script, dict[str, Json], bool]]] = {
    "first_byte": (replying(hold=True), {"first_byte": 0.3}, True),
    "idle": (replying(HEAD, events("text one"), hold=True), {"idle": 0.3}, False),
    "total": (replying(hold=True), {"total": 0.3}, False),
}


@pytest.mark.parametrize("setting", ENDED_BY)
async def test_a_timeout_names_its_setting_and_that_to_ask_again_would_cost_as_much(start: Start, setting: str) -> None:
    script, limits, stream = ENDED_BY[setting]
    gateway, _ = await start(script, {**PATIENT, **limits})
    response = await gateway.chat(stream=stream)
    assert response.status_code == 504
    assert f"timeouts.{setting}" in response.json()["error"]["message"]
    assert response.headers["x-should-retry"] == "false"


async def test_a_timeout_before_anything_was_sent_may_be_tried_again() -> None:
    """Nobody accepts: the kernel's queue for this address is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            limits: dict[str, dict[str, Json]] = {"connect": {"connect": 0.3}, "first_byte": {"first_byte": 0.3}}
            for setting, limit in limits.items():
                settings = settings_for(f"http://127.0.0.1:{port}", {**PATIENT, **limit})
                async with running_gateway(settings) as gateway:
                    response = await gateway.chat(stream=True)
                assert f"timeouts.{setting}" in response.json()["error"]["message"]
                assert "x-should-retry" not in response.headers


async def test_a_client_that_leaves_leaves_nothing_to_the_collector(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("start", "text Hel"))
        await connection.gone()

    def kept() -> int:
        return sum(isinstance(one, Deadlines | Exchange | StreamResponder) for one in gc.get_objects())

    gateway, backend = await start(script)
    gc.collect()
    before = kept()
    gc.disable()
    try:
        async with gateway.client.stream("POST", "/v1/chat/completions", json={**hello(), **STREAM}) as response:
            await anext(response.aiter_bytes())
        await backend.closed.wait()
        while gateway.server.server_state.tasks:  # noqa: ASYNC110 (nothing is told of it)
            await asyncio.sleep(0.01)
        after = kept()
    finally:
        gc.enable()
    assert after == before


async def test_silence_is_broken_by_comments_and_faults_then_travel_in_band(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.gone()

    gateway, _ = await start(script, {**PATIENT, "first_byte": 2}, first_event_gate_s=0.1, sse_ping_s=0.1)
    response = await gateway.chat(**STREAM)
    assert response.status_code == 200
    assert response.text.startswith(": ping\n\n")
    assert response.text.count(": ping\n\n") >= 2
    assert json.loads(frames(response.text)[-1])["error"]["code"] == "upstream_timeout"


async def test_comments_between_two_distant_events(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, events("text one"))
        await asyncio.sleep(0.4)
        await connection.send(events("text two", "finish"), END)

    gateway, _ = await start(script, sse_ping_s=0.1)
    response = await gateway.chat(**STREAM)
    assert ": ping\n\n" in response.text
    assert response.text.endswith("data: [DONE]\n\n")


PHASES: Final[dict[str, tuple[Script, bool]]] = {
    "whole, before the head": (replying(hold=True), False),
    "whole, in the body": (replying(HEAD, events("text one"), hold=True), False),
    "stream, before the head": (replying(hold=True), True),
    "stream, before the first event": (replying(HEAD, hold=True), True),
    "stream, stalled": (replying(HEAD, events("text one"), hold=True), True),
}


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("name", PHASES)
async def test_a_client_that_leaves_takes_the_backend_request_along(start: Start, name: str, reset: bool) -> None:
    script, stream = PHASES[name]
    gateway, backend = await start(script)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    body = json.dumps({**hello(), "stream": stream}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )
    await backend.requested.wait()
    if name == "stream, stalled":
        await reader.readuntil(b"one")
    if reset:
        writer.transport.abort()
    else:
        writer.close()
    async with asyncio.timeout(5):
        await backend.closed.wait()
    assert gateway.app.gateway_state.scheduler.size == 0


async def test_a_client_that_leaves_a_busy_stream(start: Start) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD)
        while True:
            await connection.send(events("text " + "x" * 1000))
            await asyncio.sleep(0.005)

    gateway, backend = await start(script)
    async with gateway.client.stream("POST", "/v1/chat/completions", json={**hello(), "stream": True}) as response:
        async for _ in response.aiter_raw():
            break
    async with asyncio.timeout(5):
        await backend.closed.wait()


async def test_a_client_that_takes_nothing_pauses_the_backend_and_is_cut_off(start: Start) -> None:
    sent = 0

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.send(HEAD)
        while True:
            await connection.send(events("text " + "x" * 60_000))
            sent += 60_000

    gateway, backend = await start(script, write_timeout_s=0.5)
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port, limit=1024)
    body = json.dumps({**hello(), "stream": True}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stream stub says WriteTransport
    async with asyncio.timeout(5):
        await backend.closed.wait()
    assert sent < 24 * 2**20
    assert gateway.app.gateway_state.scheduler.size == 0
    writer.transport.abort()
    del reader


async def test_changes_are_counted_in_a_header_and_told_on_demand(start: Start) -> None:
    gateway, _ = await start(replying(HEAD, events("notice mended it", "text one", "finish"), END))
    tools: Json = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    request = {**hello(), "tools": tools}
    response = await gateway.client.post("/v1/chat/completions", json=request, headers={"x-dragoman-explain": "1"})
    assert response.headers["x-dragoman-changes"] == "encode=1; backend=2"
    rules = [notice["rule"] for notice in response.json()["dragoman"]["diagnostics"]]
    assert rules == ["TOOLS_NOT_OFFERED", "TEXT_MENDED", "USAGE_ESTIMATED"]
    unasked = await gateway.client.post("/v1/chat/completions", json=request)
    assert unasked.json()["dragoman"] == {"usage": "estimated"}


async def test_many_at_once_stay_apart(start: Start) -> None:
    async def script(connection: Connection) -> None:
        word = connection.body.decode().rpartition("\n")[2]
        await connection.send(HEAD)
        for letter in word:
            await connection.send(events(f"text {letter}"))
            await asyncio.sleep(0)
        await connection.send(events("finish"), END)

    gateway, _ = await start(script)

    async def ask(number: int) -> None:
        word = f"number-{number}"
        response = await gateway.chat(messages=[{"role": "user", "content": word}], stream=number % 2 == 0)
        if number % 2:
            assert response.json()["choices"][0]["message"]["content"] == word
            return
        chunks = [json.loads(data) for data in frames(response.text)[:-1]]
        assert "".join(part["choices"][0]["delta"].get("content", "") for part in chunks) == word
        assert len({part["id"] for part in chunks}) == 1

    await asyncio.gather(*(ask(number) for number in range(60)))


async def test_a_stop_behind_a_complete_answer_is_no_failure(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The framing's last bytes are still on the way when the time to finish is over."""
    monkeypatch.setattr("gateway.server.upstream.backend_response.DRAIN_S", 1)
    caplog.set_level("INFO", "gateway")

    async def unended(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello", "finish"))
        await connection.gone()

    gateway, _ = await start(unended)
    response = await gateway.chat()
    gateway.app.gateway_state.stop()
    await asyncio.sleep(0.05)
    assert response.status_code == 200
    assert [line for line in caplog.messages if "server_shutdown" in line or "upstream_failure" in line] == []
    assert sum(" status=200 code=- " in line for line in caplog.messages) == 1
