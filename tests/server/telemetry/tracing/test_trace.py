"""Tests over real sockets the spans of successful, rejected, truncated and aborted requests."""

import asyncio
import gc
import json
import re
from typing import Final, NamedTuple

import pytest
import pytest_asyncio
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gateway.core.conversation import Json
from gateway.server.telemetry.tracing.trace import Trace
from gateway.server.telemetry.tracing.traceparent import Parent, encode_traceparent, traceparent_header
from gateway.testing.gateway import RunningGateway, hello
from tests.server.backend import END, HEAD, Connection, answer, events
from tests.server.telemetry.tracing.collector import (
    CLIENT,
    SERVER,
    Collector,
    collector_running,
    read_attributes,
    told,
    traced_gateway,
)

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
CALLER: Final = "b7ad6b7169203331"
SECRET: Final = "words-that-nobody-may-repeat"


async def by_word(connection: Connection) -> None:
    """What the client's text asks for."""
    if b"refused" in connection.body:
        await connection.send(answer("429 Too Many", SECRET.encode()))
    elif b"cut" in connection.body:
        await connection.send(HEAD, events(f"text {SECRET}"))
        await asyncio.sleep(0.05)
        await connection.send(END)
    elif b"stalled" in connection.body:
        await connection.send(HEAD, events(f"text {SECRET}"))
        await connection.gone()
    else:
        await connection.send(HEAD, events(f"text {SECRET}"))
        await asyncio.sleep(0.05)
        await connection.send(events(f'call {SECRET} {{"a": "{SECRET}"}}', "finish"), END)


async def ask(gateway: RunningGateway, name: str, said: str, **fields: Json) -> int:
    """Sends one request with the secret in many places. `said`: a word and, after a semicolon, a traceparent."""
    word, _, parent = said.partition(";")
    headers = {"x-request-id": name, "cookie": SECRET, "baggage": f"a={SECRET}"}
    messages: Json = [
        {"role": "user", "content": f"{word} {SECRET}"},
        {"role": "tool", "tool_call_id": "call_9", "content": SECRET},
        {"role": "user", "content": word},
    ]
    tools: Json = [{"type": "function", "function": {"name": SECRET, "description": SECRET}}]
    response = await gateway.client.post(
        "/v1/chat/completions",
        json={**hello(), "messages": messages, "tools": tools, "temperature": 0.5, **fields},
        headers={**headers, "traceparent": parent} if parent else headers,
    )
    return response.status_code


async def leave(gateway: RunningGateway) -> None:
    """Ask for a stream, and go when its text has begun."""
    body = json.dumps({**hello(), "messages": [{"role": "user", "content": "stalled"}], "stream": True}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-request-id: gone\r\n"
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    await reader.readuntil(SECRET.encode())
    writer.transport.abort()
    async with asyncio.timeout(5):
        while gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (the gateway sets no event when it is at rest)
            await asyncio.sleep(0.01)


class Seen(NamedTuple):
    """What each party received: the collector, the backend (heads), and the clients (statuses)."""

    collector: Collector
    heads: dict[str, bytes]
    statuses: dict[str, int]

    def server(self, name: str) -> Span:
        return self.collector.of(name)[0]

    def client(self, name: str) -> Span:
        found = self.collector.of(name)[1]
        assert found is not None
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen() -> Seen:
    """All requests at one gateway, which has ended since."""
    statuses: dict[str, int] = {}
    heads: dict[str, bytes] = {}
    async with collector_running() as collector:
        async with traced_gateway(by_word, collector, {"service_name": "mine"}) as (gateway, backend):

            async def one(name: str, said: str = "well", **fields: Json) -> None:
                statuses[name] = await ask(gateway, name, said, **fields)
                if backend.seen:
                    heads[name] = backend.seen.pop()[0]

            await one("whole")
            await one("streamed", stream=True)
            await one("refused", "refused")
            await one("cut", "cut", stream=True)
            await one("unknown", model=f"x{'y' * 300}")
            await one("invalid", messages=3)
            await one("continued", f"well;00-{TRACE}-{CALLER}-01")
            await one("unrecorded", f"well;00-{TRACE}-{CALLER}-00")
            await leave(gateway)
            assert (await gateway.client.get("/v1/models")).status_code == 200
        return Seen(collector, heads, statuses)


def test_a_request_is_a_server_span_with_the_backends_part_below_it(seen: Seen) -> None:
    server, client = seen.server("streamed"), seen.client("streamed")
    assert (server.name, server.kind, server.parent_span_id) == ("chat m", SERVER, b"")
    assert (client.name, client.kind, client.trace_id) == ("POST plain", CLIENT, server.trace_id)
    assert server.start_time_unix_nano <= client.start_time_unix_nano
    assert client.start_time_unix_nano < client.end_time_unix_nano <= server.end_time_unix_nano
    assert server.status.code == client.status.code == Status.STATUS_CODE_UNSET
    assert len(server.trace_id) == 16 and len(server.span_id) == 8


def test_the_attributes_of_both(seen: Seen) -> None:
    server, client = told(seen.server("streamed")), told(seen.client("streamed"))
    first = server.pop("gen_ai.response.time_to_first_chunk")
    assert isinstance(first, float) and 0 < first < 5
    assert server == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "plain",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "dragoman.dialect": "openai_chat",
        "url.path": "/v1/chat/completions",
        "http.response.status_code": 200,
        "dragoman.request_id": "streamed",
        "dragoman.backend": "plain",
        "dragoman.changes.repair": 1,
        "dragoman.changes.encode": 1,
    }
    port = client.pop("server.port")
    assert isinstance(port, int) and port > 0
    assert client == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "dragoman.backend": "plain",
        "dragoman.backend.model": "inner",
    }


def test_a_whole_answer_says_the_same(seen: Seen) -> None:
    streamed, whole = told(seen.server("streamed")), told(seen.server("whole"))
    assert whole["gen_ai.request.stream"] is False
    # Its counts are estimated, which a stream whose client did not ask for any has no need of.
    estimated = {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "dragoman.usage.estimated"}
    assert whole.keys() == {*streamed.keys(), *estimated, "dragoman.changes.backend"}
    assert seen.client("whole").events[0].name == "dragoman.first_event"


def test_notices_are_events_with_names_and_counts(seen: Seen) -> None:
    found = [(event.name, read_attributes(event.attributes)) for event in seen.server("whole").events]
    notices = [tuple(attributes.values()) for name, attributes in found if name == "dragoman.notice"]
    assert notices == [
        ("repair", "TOOL_ORPHAN", "changed", 1),
        ("encode", "TOOLS_NOT_OFFERED", "dropped", 1),
        ("backend", "USAGE_ESTIMATED", "added", 1),
    ]
    assert found[0][1].keys() == {"dragoman.stage", "dragoman.rule", "dragoman.action", "dragoman.count"}


FAULTS: Final = {
    "refused": (429, 429, "upstream_error", "head"),
    "cut": (200, 200, "upstream_stream_truncated", "stream"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_backend_that_fails(seen: Seen, name: str) -> None:
    status, theirs, code, phase = FAULTS[name]
    server, client = seen.server(name), seen.client(name)
    attributes = told(server)
    assert (attributes["error.type"], attributes["dragoman.phase"]) == (code, phase)
    assert attributes["http.response.status_code"] == status == seen.statuses[name]
    assert "gen_ai.response.finish_reasons" not in attributes
    assert (told(client)["error.type"], told(client)["http.response.status_code"]) == (code, theirs)
    assert client.status.code == Status.STATUS_CODE_ERROR
    assert (server.status.code == Status.STATUS_CODE_ERROR) == (name == "cut")
    assert server.status.message == client.status.message == ""


def test_what_never_reached_a_backend_has_one_span(seen: Seen) -> None:
    for name, status, code in (("unknown", 404, "model_not_found"), ("invalid", 400, "invalid_type")):
        server, client = seen.collector.of(name)
        assert client is None
        assert (server.name, told(server)["error.type"]) == ("chat", code)
        assert told(server)["http.response.status_code"] == status == seen.statuses[name]
        assert server.status.code == Status.STATUS_CODE_UNSET
    assert told(seen.server("unknown"))["gen_ai.request.model"] == f"x{'y' * 254}"


def test_a_client_that_leaves_is_no_fault(seen: Seen) -> None:
    server, client = seen.server("gone"), seen.client("gone")
    assert told(server)["http.response.status_code"] == 499
    assert told(server)["error.type"] == told(client)["error.type"] == "client_gone"
    assert server.status.code == client.status.code == Status.STATUS_CODE_UNSET


def test_the_clients_trace_is_continued_and_passed_on(seen: Seen) -> None:
    server, client = seen.server("continued"), seen.client("continued")
    assert (server.trace_id.hex(), server.parent_span_id.hex()) == (TRACE, CALLER)
    assert server.flags & 0x300 == 0x300 and client.flags & 0x300 == 0x100
    assert f"traceparent: 00-{TRACE}-{client.span_id.hex()}-01\r\n".encode() in seen.heads["continued"]


def test_a_trace_that_the_client_does_not_record_is_only_passed_on(seen: Seen) -> None:
    assert seen.statuses["unrecorded"] == 200
    found = re.search(rb"traceparent: 00-(\w{32})-(\w{16})-00\r\n", seen.heads["unrecorded"])
    assert found and found[1].decode() == TRACE and found[2].decode() != CALLER
    with pytest.raises(ValueError, match="unpack"):
        seen.collector.of("unrecorded")


def test_only_the_place_in_the_trace_goes_to_the_backend(seen: Seen) -> None:
    for name, head in seen.heads.items():
        assert head.count(b"traceparent: ") == 1, name
        assert b"baggage" not in head and b"cookie" not in head


def test_only_chat_requests_have_spans_and_none_holds_contents(seen: Seen) -> None:
    asked = [told(span).get("dragoman.request_id") for span in seen.collector.spans() if span.kind == SERVER]
    assert sorted(map(str, asked)) == sorted({*seen.statuses, "gone"} - {"unrecorded"})
    assert SECRET.encode() not in seen.collector.heard
    assert b"well" not in seen.collector.heard and b"call_9" not in seen.collector.heard


def test_the_process_tells_who_it_is(seen: Seen) -> None:
    (about,) = {tuple(sorted(read_attributes(one.resource.attributes).items())) for one in seen.collector.resources()}
    named = dict(about)
    assert named["service.name"] == "mine"
    assert named.keys() >= {"service.version", "service.instance.id", "telemetry.sdk.language"}


async def test_nothing_is_kept_of_a_request_that_has_ended() -> None:
    async with collector_running() as collector, traced_gateway(by_word, collector) as (gateway, _):
        for name, said in (("whole", "well"), ("refused", "refused"), ("cut", "cut")):
            await ask(gateway, name, said, stream=name == "cut")
        await ask(gateway, "unknown", "well", model="unknown")
        await leave(gateway)
        async with asyncio.timeout(5):
            while any(isinstance(one, Trace) for one in gc.get_objects()):  # noqa: ASYNC110 (nothing is told of it)
                await asyncio.sleep(0.01)


def test_a_traceparent_of_the_settings_is_the_only_one() -> None:
    traceparent = encode_traceparent(Parent(1, 3, True))
    assert traceparent_header(traceparent, frozenset({"host", "traceparent"})) == ()
    assert traceparent_header(traceparent, frozenset({"host"})) == (("traceparent", f"00-{1:032x}-{3:016x}-01"),)
