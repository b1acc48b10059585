"""A gateway in front of the invented services, over real sockets: each service over two carriers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Router
from uvicorn import Config
from uvicorn.server import ServerState

from adapters.proto.backend.carriers import CARRIERS
from adapters.proto.backend.schema import message_class
from gateway.core.conversation import Json
from gateway.demo.player.connection import DemoConnection
from gateway.demo.player.endpoint import post, read_body
from gateway.demo.player.playback import Cut, Response
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.proto.backend.mappings import MAPPINGS
from tests.adapters.proto.backend.services import ANSWERS, METHODS, WRITERS, answer, envelope, grpc_web
from tests.promises.wire_gateway import finishes, frames, text_of

PAIRS = [
    ("talk", "grpc_web"),
    ("talk", "sse_base64"),
    ("parts", "connect"),
    ("parts", "grpc_web_text"),
    ("deltas", "frames_varint"),
    ("deltas", "frames_u32"),
]
TOOLS: list[Json] = [{"type": "function", "function": {"name": name}} for name in ("look", "walk")]
HELLO: list[Json] = [{"role": "user", "content": "Hello"}]


class Service:
    """A loopback server that plays one response, and keeps the requests."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []

    async def answer(self, request: Request) -> Response:
        self.bodies.append(await read_body(request))
        self.headers.append(request.headers)
        return self.response


@asynccontextmanager
async def serving(path: str, response: Response) -> AsyncIterator[tuple[str, Service]]:
    """The base_url of a server that plays the response at this path."""
    backend = Service(response)
    config = Config(Router([post(path, backend.answer)]), ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: DemoConnection(config, state, {}), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", backend
    finally:
        server.close()
        for connection in list(state.connections):
            assert isinstance(connection, DemoConnection)
            await connection.cut(False)
        await server.wait_closed()


@asynccontextmanager
async def served(service: str, carrier: str, response: Response) -> AsyncIterator[tuple[RunningGateway, Service]]:
    """A gateway in front of a server that plays the response of this service."""
    entry = {**MAPPINGS[service], "carrier": carrier, "adapter": "proto"}
    async with serving(entry.get("path") or METHODS[service].path, response) as (base_url, backend):
        settings: dict[str, Json] = {
            "backends": {"b": {**entry, "base_url": base_url}},
            "models": {"m": {"backend": "b"}},
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


def playing(carrier: str, wire: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """The bytes in writes of seven."""
    parts = tuple(wire[at : at + 7] for at in range(0, len(wire), 7))
    return Response(parts, headers={"content-type": CARRIERS[carrier].accepts[0], **(headers or {})})  # type: ignore[index]


def message(service: str, carrier: str, body: bytes) -> Any:
    """The request that the service received. (Any: its class exists only at run time.)"""
    return message_class(METHODS[service].request).FromString(CARRIERS[carrier].read(body))  # type: ignore[index]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("service", "carrier"), PAIRS)
async def test_a_service_answers(service: str, carrier: str, stream: bool) -> None:
    wire = WRITERS[carrier](ANSWERS[service])
    tools = {"tools": TOOLS} if service != "talk" else {}
    async with served(service, carrier, playing(carrier, wire)) as (gateway, backend):
        response = await gateway.chat(stream=stream, messages=HELLO, **tools)
    assert response.status_code == 200, response.text
    assert message(service, carrier, backend.bodies[0]).ByteSize() > 0
    said = {"talk": "Good morning, 日本.", "parts": "Look: ", "deltas": "日本"}[service]
    if stream:
        *data, done = frames(response.text)
        assert (text_of(data), finishes(data), done) == (
            said,
            ["stop" if service == "talk" else "tool_calls"],
            "[DONE]",
        )
        return
    choice = response.json()["choices"][0]
    assert choice["message"]["content"] == said
    calls = [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]
    assert calls == ([] if service == "talk" else ["look", "walk"])
    assert response.json()["usage"]["completion_tokens"] == {"talk": 5, "parts": 9, "deltas": 9}[service]


async def test_the_text_of_a_prompt_holds_tools_and_calls_are_found_in_the_answer() -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"at": "door"}}\n</tool_call>'
    wire = grpc_web([answer("talk", {"soFar": call[:30]}), answer("talk", {"soFar": call, "ending": "ENDING_DONE"})])
    async with served("talk", "grpc_web", playing("grpc_web", wire)) as (gateway, backend):
        response = await gateway.chat(messages=HELLO, tools=TOOLS, temperature=0.5, max_tokens=9, seed=0)
    (made,) = response.json()["choices"][0]["message"]["tool_calls"]
    assert (made["function"]["name"], json.loads(made["function"]["arguments"])) == ("look", {"at": "door"})
    sent = message("talk", "grpc_web", backend.bodies[0])
    assert "<tool_call>" in sent.text and sent.text.endswith("Assistant:")
    assert (sent.engine, sent.limits.most_tokens, sent.limits.heat, sent.HasField("seed")) == ("m", 9, 0.5, True)
    assert backend.headers[0]["x-grpc-web"] == "1"


STATUS: list[tuple[str, Callable[[], Response], int, str]] = [
    (
        "a status in the head alone",
        lambda: playing("grpc_web", b"", {"grpc-status": "8", "grpc-message": "slow%20down"}),
        429,
        "rate_limit_exceeded",
    ),
    (
        "a status behind the text",
        lambda: playing("grpc_web", grpc_web(ANSWERS["talk"], b"grpc-status: 14\r\n")),
        503,
        "upstream_overloaded",
    ),
    (
        "no status",
        lambda: playing("grpc_web", b"".join(map(envelope, ANSWERS["talk"]))),
        502,
        "upstream_stream_truncated",
    ),
    ("a status and no message", lambda: playing("grpc_web", grpc_web([])), 502, "upstream_invalid_response"),
    ("nothing", lambda: playing("grpc_web", b""), 502, "upstream_invalid_response"),
    (
        "a connection that is cut",
        lambda: Response(
            (envelope(ANSWERS["talk"][0]), Cut("reset")), headers={"content-type": "application/grpc-web+proto"}
        ),
        502,
        "upstream_stream_truncated",
    ),
    (
        "an error in a message",
        lambda: playing("grpc_web", grpc_web([answer("talk", {"failure": {"sentence": "no", "number": 429}})])),
        429,
        "rate_limit_exceeded",
    ),
    (
        "a failed end",
        lambda: playing("grpc_web", grpc_web([answer("talk", {"soFar": "x", "ending": "ENDING_BROKEN"})])),
        502,
        "upstream_stream_truncated",
    ),
    (
        "a text so far that contradicts itself",
        lambda: playing("grpc_web", grpc_web([answer("talk", {"soFar": "a"}), answer("talk", {"soFar": "b"})])),
        502,
        "upstream_invalid_event",
    ),
    ("another type", lambda: playing("grpc_web", grpc_web([b"\xfa\x7c\x00"])), 502, "upstream_invalid_event"),
    (
        "another media type",
        lambda: Response((b"{}",), headers={"content-type": "text/html"}),
        502,
        "upstream_invalid_response",
    ),
]


@pytest.mark.parametrize(("name", "response", "status", "code"), STATUS, ids=[name for name, *_ in STATUS])
async def test_a_failure_is_never_a_success(
    name: str, response: Callable[[], Response], status: int, code: str
) -> None:
    async with served("talk", "grpc_web", response()) as (gateway, _):
        whole = await gateway.chat(messages=HELLO)
        streamed = await gateway.chat(messages=HELLO, stream=True)
    assert (whole.status_code, whole.json()["error"]["code"]) == (status, code)
    assert '"finish_reason":"stop"' not in streamed.text and '"error"' in streamed.text


@pytest.mark.parametrize(
    ("service", "carrier", "header", "unit"),
    [("talk", "grpc_web", "grpc-timeout", "m"), ("parts", "connect", "connect-timeout-ms", "")],
)
async def test_the_backend_is_told_how_much_time_is_left(service: str, carrier: str, header: str, unit: str) -> None:
    wire = WRITERS[carrier](ANSWERS[service])
    async with served(service, carrier, playing(carrier, wire)) as (gateway, backend):
        await gateway.chat(messages=HELLO)
    told = backend.headers[0][header]
    assert told.endswith(unit) and 500_000 < int(told.removesuffix(unit)) <= 600_000


async def test_a_connect_error_keeps_its_code() -> None:
    body = b'{"code": "resource_exhausted", "message": "slow down"}'
    response = Response((body,), 503, {"content-type": "application/json"})
    async with served("parts", "connect", response) as (gateway, _):
        failed = await gateway.chat(messages=HELLO)
    assert (failed.status_code, failed.json()["error"]["code"]) == (429, "rate_limit_exceeded")


async def test_what_a_newer_schema_adds_is_told_once() -> None:
    newer = answer("deltas", {"outputs": [{"content": "eA=="}]}) + b"\xfa\x7c\x00"
    unread = answer("deltas", {"outputs": [{"index": 3}]}) + b"\xfa\x7c\x00"
    end = answer("deltas", {"outputs": [{"reason": "stop"}]})
    wire = WRITERS["frames_varint"]([newer, unread, unread, end])
    async with served("deltas", "frames_varint", playing("frames_varint", wire)) as (gateway, _):
        response = await gateway.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": HELLO}, headers={"x-dragoman-explain": "1"}
        )
    assert response.text.count("SCHEMA_OUTDATED") == 1 and "field 1999 of Delta" in response.text


async def test_what_a_newer_schema_adds_is_counted_by_path_and_number() -> None:
    chunk = b"\x1a\x05\xda\x3e\x02\x08\x01"  # a part with the field 1003
    ended = answer("parts", {"parts": [{"text": "x"}], "ended": {"fully": {}}})
    wire = WRITERS["connect"]([chunk, chunk, ended])
    async with served("parts", "connect", playing("connect", wire)) as (gateway, _):
        for _ in range(2):
            assert (await gateway.chat(messages=HELLO)).status_code == 200
        metrics = (await gateway.client.get("/metrics")).text
    (line,) = [line for line in metrics.splitlines() if line.startswith("gateway_unknown_fields_total{")]
    labels, count = line.removeprefix("gateway_unknown_fields_total").split()
    assert labels == '{backend="b",number="1003",path="Chunk.parts"}' and float(count) == 2
