"""What is made again from a capture equals what was captured: on every wire, for every fault, from every dialect."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from typing import Final, cast

import httpx
import pytest

from gateway.core.conversation import NO_REQUEST, Json
from gateway.demo.settings import DEMO_SETTINGS
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded
from gateway.recording.recording import Interaction
from gateway.testing.faults import FAULTS, FAULTS_BY_KIND, playing
from gateway.testing.faulty import END, Connection, FaultyBackend, chunk, faulty_backend, head
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.paths import ROOT
from tests.promises.grpc_faults import ENTRY, GRPC_FAULTS_BY_KIND
from tests.promises.played_fault import Played
from tests.promises.table import GRPC_PROMISES, Promise
from tests.promises.test_faults import PLAYED
from tests.promises.wire_gateway import LIMITS, SHORT, TIMEOUTS, wire_settings
from tests.promises.wires import WIRES
from tests.server.inspect.test_recent_requests import contents_of
from tests.server.upstream.http2.peer import serving

ALWAYS: Final[Mapping[str, Json]] = {"inspector": {"contents": "always"}}
DIALECTS: Final[Mapping[str, tuple[str, dict[str, Json]]]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Say hello."}]}),
    "openai_responses": ("/v1/responses", {"input": "Say hello.", "store": False}),
    "anthropic_messages": (
        "/v1/messages",
        {"max_tokens": 50, "messages": [{"role": "user", "content": "Say hello."}]},
    ),
    "openai_completions": ("/v1/completions", {"prompt": "Say hello."}),
    "ollama": ("/api/chat", {"messages": [{"role": "user", "content": "Say hello."}]}),
}
DEMO_MODELS: Final = tuple(cast("dict[str, dict[str, Json]]", DEMO_SETTINGS)["models"])
# Each kind of fault on one wire; `make recordings` plays every one on every wire.
_BY_KIND: Final = [list(played) for _, played in groupby(PLAYED, key=lambda one: one[0].id)]
SAMPLE: Final = [played[n % len(played)] for n, played in enumerate(_BY_KIND)]


def interactions(gateway: RunningGateway) -> list[Interaction]:
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    recent = inspector.recent
    found = [contents_of(recent, summary.id) for summary in recent.listed(limit=1000)]
    assert found and all(found)
    return [one.interaction for one in found if one is not None]


def check_all(gateway: RunningGateway) -> None:
    settings, found = gateway.app.gateway_state.settings, interactions(gateway)
    assert not any(one.gaps for one in found)
    wrong = [
        (one.request.path, one.route and one.route.model, check)
        for one in found
        for check in compare_to_recorded(one, run_offline(one, settings))
        if check.difference
    ]
    assert wrong == []


@asynccontextmanager
async def demo_gateway() -> AsyncIterator[RunningGateway]:
    async with running_gateway({**cast("dict[str, Json]", DEMO_SETTINGS), **ALWAYS}) as gateway:
        yield gateway


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_dialect_with_every_demo_backend(dialect: str) -> None:
    path, body = DIALECTS[dialect]
    async with demo_gateway() as gateway:
        for model in DEMO_MODELS:
            for stream in (False, True):
                answer = await gateway.client.post(path, json={**body, "model": model, "stream": stream})
                assert answer.status_code == 200, answer.text
        assert len(interactions(gateway)) == 2 * len(DEMO_MODELS)
        for one in interactions(gateway):
            assert one.sent is not None and one.head is not None and one.reads and one.writes
            # The end of a body of unknown length (chunked, or HTTP/2) may arrive behind the end of the answer, and is
            # no part of it then.
            assert one.close is not None or "content-length" not in one.head.headers
            assert one.end is not None and one.end.status == 200 and one.end.cut is None
            marks = one.end.marks
            order = [marks.read, marks.prepared, marks.connected, marks.head, marks.first, marks.last, marks.end]
            times = [mark for mark in order if mark is not None]
            assert len(times) == 7 and times == sorted(times)
        check_all(gateway)


async def test_an_id_that_was_made_for_the_request() -> None:
    """The demo backend reads no id: it stands where the name of the model does."""
    preset = json.loads((ROOT / "adapters" / "proto" / "presets" / "demo.json").read_text())
    request = {**preset["request"], "model": "$request_id"}
    backend: Json = {"adapter": "proto", "preset": "demo", "base_url": "demo:grpc", "request": request}
    settings: dict[str, Json] = {"backends": {"b": backend}, "models": {"m": {"backend": "b"}}}
    async with running_gateway({**settings, **ALWAYS}) as gateway:
        for _ in range(2):
            answer = await gateway.client.post(
                "/v1/chat/completions", json={**DIALECTS["openai_chat"][1], "model": "m"}
            )
            assert answer.status_code == 200, answer.text
        sent = [one.sent for one in interactions(gateway)]
        assert len({one.request_id for one in sent if one is not None} - {NO_REQUEST}) == 2
        assert all(one is not None and one.body and one.request_id.encode() in one.body.content for one in sent)
        check_all(gateway)


async def test_gemini_and_its_query() -> None:
    body: Json = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
    async with demo_gateway() as gateway:
        for method in ("generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent?key=hidden"):
            answer = await gateway.client.post(f"/v1beta/models/demo-chat:{method}", json=body)
            assert answer.status_code == 200
        check_all(gateway)
        assert not any("hidden" in one.request.path for one in interactions(gateway))


async def test_a_repaired_history_and_the_notices_a_client_asks_for() -> None:
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "tool", "tool_call_id": "other", "content": "lost"},
        {"role": "user", "content": "And now? " + "long " * 60_000},
    ]
    async with demo_gateway() as gateway:
        for model in DEMO_MODELS:
            for stream in (False, True):
                await gateway.client.post(
                    "/v1/chat/completions",
                    json={"model": model, "stream": stream, "messages": messages, "tools": []},
                    headers={"x-dragoman-explain": "1"},
                )
        check_all(gateway)
        assert any(one.notices for one in interactions(gateway))


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"model": "unknown", "messages": [{"role": "user", "content": "x"}]}',
        b'{"model": "demo-text", "n": 4, "messages": [{"role": "user", "content": "x"}]}',
        b'{"model": "demo-chat", "messages": "none"}',
        b'{"model": "demo-chat", "messages": [{"role": "user", "content": "x"}], "x": "\\ud800"}',
    ],
)
async def test_a_refused_request(body: bytes) -> None:
    async with demo_gateway() as gateway:
        for explain in ("0", "1"):
            headers = {"content-type": "application/json", "x-dragoman-explain": explain}
            await gateway.client.post("/v1/chat/completions", content=body, headers=headers)
        check_all(gateway)
        assert {one.body for one in interactions(gateway)} == {body}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_body_that_ends_behind_the_answer(wire: str) -> None:
    spoken, answered = WIRES[wire].spoken, asyncio.Semaphore(0)

    async def script(connection: Connection) -> None:
        await connection.send(head(spoken.media_type), chunk(spoken.answer))
        await answered.acquire()
        await connection.send(END)

    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(script))
        settings = {**wire_settings(WIRES[wire], {"late": backend.base_url}), **ALWAYS}
        gateway = await stack.enter_async_context(running_gateway(settings))
        answers = {}
        for stream in (False, True):
            answer = await gateway.chat(model="late", stream=stream)
            answered.release()
            answers[answer.headers["x-request-id"]] = answer
        for one in interactions(gateway):
            answer = answers.pop(one.request.id)
            assert answer.status_code == 200
            assert b"".join(write.data.content for write in one.writes) == answer.content
            assert one.close is None and one.end is not None and one.end.cut is None
        assert not answers
        check_all(gateway)


def _plays(row: Promise, faults: Mapping[str, object]) -> list[Played]:
    times = (False, True) if row.late else (False,)
    return [Played(row, fault, streams, begun) for fault in faults for streams in (False, True) for begun in times]


async def _check_fault(row: Promise, wire: str) -> None:
    plays = _plays(row, FAULTS_BY_KIND[row.id])
    async with AsyncExitStack() as stack:
        backends: dict[str, FaultyBackend] = {}
        for played in plays:
            context = playing(FAULTS[played.fault], WIRES[wire].spoken, played.begun)
            backends[played.model] = await stack.enter_async_context(context)
        base_urls = {name: backend.base_url for name, backend in backends.items()}
        settings = {**wire_settings(WIRES[wire], base_urls, SHORT if row.waits else TIMEOUTS), **ALWAYS}
        gateway = await stack.enter_async_context(running_gateway(settings))
        await _ask(gateway, plays)


async def _ask(gateway: RunningGateway, plays: list[Played]) -> None:
    asked = (gateway.chat(model=played.model, stream=played.streams) for played in plays)
    answers: list[httpx.Response] = await asyncio.gather(*asked)
    found = {one.request.id: one for one in interactions(gateway)}
    for answer in answers:
        one = found[answer.headers["x-request-id"]]
        written = b"".join(write.data.content for write in one.writes)
        assert written == answer.content
        assert one.client_head is not None and one.client_head.status == answer.status_code
        assert one.end is not None and one.end.code
    check_all(gateway)


@pytest.mark.parametrize(("row", "wire"), SAMPLE, ids=[f"{row.id}-{wire}" for row, wire in SAMPLE])
async def test_a_fault_is_made_again(row: Promise, wire: str) -> None:
    await _check_fault(row, wire)


@pytest.mark.recordings
@pytest.mark.parametrize(("row", "wire"), PLAYED, ids=[f"{row.id}-{wire}" for row, wire in PLAYED])
async def test_every_fault_is_made_again_on_every_wire(row: Promise, wire: str) -> None:
    await _check_fault(row, wire)


async def _check_grpc(row: Promise) -> None:
    plays = _plays(row, GRPC_FAULTS_BY_KIND[row.id])
    async with AsyncExitStack() as stack:
        backends: dict[str, Json] = {}
        for played in plays:
            script = GRPC_FAULTS_BY_KIND[row.id][played.fault].script(played.begun)
            port, _ = await stack.enter_async_context(serving(script))
            timeouts: Json = dict({**SHORT, "connect": 0.3} if row.waits else TIMEOUTS)
            backends[played.model] = {**ENTRY, "base_url": f"http://127.0.0.1:{port}", "timeouts": timeouts}
        models: Json = {name: {"backend": name} for name in backends}
        settings: dict[str, Json] = {"limits": dict(LIMITS), "backends": backends, "models": models, **ALWAYS}
        await _ask(await stack.enter_async_context(running_gateway(settings)), plays)


@pytest.mark.full
@pytest.mark.parametrize("row", GRPC_PROMISES[::4], ids=lambda row: row.id)
async def test_a_fault_over_grpc_is_made_again(row: Promise) -> None:
    await _check_grpc(row)


@pytest.mark.recordings
@pytest.mark.parametrize("row", GRPC_PROMISES, ids=lambda row: row.id)
async def test_every_fault_over_grpc_is_made_again(row: Promise) -> None:
    await _check_grpc(row)


def test_the_sample_has_every_wire_and_every_kind() -> None:
    assert {wire for _, wire in SAMPLE} == set(WIRES)
    assert {row.id for row, _ in SAMPLE} == {row.id for row, _ in PLAYED}


@pytest.mark.parametrize("said", ["", "[[demo:truncated after=60]]"])
async def test_a_gap_is_told_and_nothing_is_compared_over_it(said: str) -> None:
    settings: dict[str, Json] = {
        **cast("dict[str, Json]", DEMO_SETTINGS),
        "inspector": {"contents": "always", "request_mb": 0.002},
    }
    text = f"Say hello. {said} " + "Weltraumbahnhof " * 90
    async with running_gateway(settings) as gateway:
        answer = await gateway.chat(model="demo-chat", stream=True, messages=[{"role": "user", "content": text}])
        (one,) = interactions(gateway)
        missing = {gap.side: gap.bytes for gap in one.gaps}
        kept = sum(len(write.data.content) for write in one.writes)
        assert missing["client"] == len(answer.content) - kept > 0
        checks = compare_to_recorded(one, run_offline(one))
        assert {check.subject for check in checks} == {"request", "sent"} and not any(one.difference for one in checks)
        # What is shown are the writes that were, with other words.
        answer = await gateway.client.get(f"/inspect/api/requests/{one.request.id}/answer")
        chunks = [chunk["text"] for chunk in answer.json()["chunks"]]
        assert [len(text.encode()) for text in chunks] == [len(write.data.content) for write in one.writes]
        assert "Weltraumbahnhof" not in answer.text
        assert ("upstream_stream_truncated" in "".join(chunks)) == bool(said)


async def test_a_body_above_the_cap_is_absent() -> None:
    settings: dict[str, Json] = {
        **cast("dict[str, Json]", DEMO_SETTINGS),
        "inspector": {"contents": "always", "request_mb": 0.00001},
    }
    async with running_gateway(settings) as gateway:
        await gateway.chat(model="demo-chat")
        (one,) = interactions(gateway)
        assert one.body is None and one.request.absent == "over_the_cap"
        text = json.dumps({"x": 1})
        assert text not in str(one)
