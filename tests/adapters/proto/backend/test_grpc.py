"""A gateway in front of the official server of gRPC: every shape of method, every status, cancellation, deadline."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.proto.backend.rpc_status import STATUSES
from adapters.proto.backend.schema import message_class
from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.proto.backend.grpc_server import Context, GrpcBackend, Play, Shape, grpc_backend, sends
from tests.adapters.proto.backend.mappings import MAPPINGS
from tests.adapters.proto.backend.services import ANSWERS, METHODS, answer
from tests.promises.wire_gateway import finishes, frames, text_of

HELLO: list[Json] = [{"role": "user", "content": "Hello"}]
TOOLS: list[Json] = [{"type": "function", "function": {"name": name}} for name in ("look", "walk")]
ONCE = "acme.talk.v1.Talk/SpeakOnce"
SAID = {
    "talk": ("Good morning, 日本.", "stop"),
    "parts": ("Look: ", "tool_calls"),
    "deltas": ("日本", "tool_calls"),
    "relay": ("日本", "tool_calls"),
    "forms": ("Look: ", "tool_calls"),
    "tensors": ("Good morning, 日本.", "length"),
    "lists": ("Look: 日本", "tool_calls"),
    "single": ("Look: 日本", "tool_calls"),
}


@asynccontextmanager
async def served(
    service: str, play: Play, shape: Shape = "server stream", **entry: Any
) -> AsyncIterator[tuple[RunningGateway, GrpcBackend]]:
    """A gateway in front of a server that plays the response of this service. (Any: keys of settings.json.)"""
    mapping = {"adapter": "proto", **MAPPINGS[service], "carrier": "grpc", **entry, "path": None}
    with grpc_backend(f"/{mapping['method']}", play, shape) as backend:
        settings: dict[str, Json] = {
            "backends": {"b": {**mapping, "base_url": backend.base_url}},
            "models": {"m": {"backend": "b"}},
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


@pytest.mark.parametrize("shape", ["server stream", "bidirectional"])
@pytest.mark.parametrize("service", MAPPINGS)
async def test_a_stream_answers(service: str, shape: Shape) -> None:
    text, reason = SAID[service]
    tools = {"tools": TOOLS} if reason == "tool_calls" else {}
    async with served(service, sends(ANSWERS[service]), shape) as (gateway, backend):
        response = await gateway.chat(stream=True, messages=HELLO, **tools)
    assert response.status_code == 200, response.text
    *data, done = frames(response.text)
    assert (text_of(data), done) == (text, "[DONE]")
    assert finishes(data) == [reason]
    assert message_class(METHODS[service].request).FromString(backend.requests[0]).ByteSize() > 0
    assert backend.metadata[0]["user-agent"].startswith("dragoman/")


async def test_a_unary_method_answers() -> None:
    once = answer("talk", {"soFar": "Once.", "ending": "ENDING_DONE", "tokensOut": 2})
    async with served("talk", sends([once]), "unary", method=ONCE) as (gateway, _):
        response = await gateway.chat(messages=HELLO)
    assert response.json()["choices"][0]["message"]["content"] == "Once."
    assert response.json()["usage"]["completion_tokens"] == 2


async def test_calls_share_one_connection() -> None:
    peers: list[str] = []

    def play(request: bytes, context: Context) -> Iterator[bytes]:
        peers.append(context.peer())
        yield from ANSWERS["talk"]

    async with served("talk", play) as (gateway, _):
        await gateway.chat(messages=HELLO)
        answers = await asyncio.gather(*(gateway.chat(messages=HELLO) for _ in range(20)))
    assert {one.status_code for one in answers} == {200}
    assert (len(peers), len(set(peers))) == (21, 1)


CLIENT_SEES = {
    **dict.fromkeys((1, 2, 12, 13), (502, "upstream_error")),
    **dict.fromkeys((3, 9, 11), (400, "invalid_value")),
    4: (504, "upstream_timeout"),
    5: (404, "model_not_found"),
    **dict.fromkeys((6, 10), (409, "conflict")),
    **dict.fromkeys((7, 16), (502, "upstream_auth_error")),
    8: (429, "rate_limit_exceeded"),
    14: (503, "upstream_overloaded"),
    15: (502, "upstream_invalid_response"),
}


@pytest.mark.parametrize("code", STATUSES)
async def test_a_status_is_an_error_before_the_text_and_behind_it(code: int) -> None:
    async with served("talk", sends([], code, "no, said the backend")) as (gateway, _):
        alone = await gateway.chat(messages=HELLO)
    async with served("talk", sends(ANSWERS["talk"], code)) as (gateway, _):
        behind = await gateway.chat(messages=HELLO)
        streamed = await gateway.chat(messages=HELLO, stream=True)
    assert (alone.status_code, alone.json()["error"]["code"]) == CLIENT_SEES[code]
    assert (behind.status_code, behind.json()["error"]["code"]) == CLIENT_SEES[code]
    assert '"finish_reason":"stop"' not in streamed.text and '"error"' in streamed.text


async def test_a_status_without_a_message_is_no_answer() -> None:
    async with served("talk", sends([])) as (gateway, _):
        failed = await gateway.chat(messages=HELLO)
    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "upstream_invalid_response")


async def test_a_client_that_leaves_cancels_its_call_alone() -> None:
    ended = threading.Event()

    def play(request: bytes, context: Context) -> Iterator[bytes]:
        if b"wait" in request:
            # Nothing else than a cancellation ends this call.
            context.add_callback(ended.set)
            yield ANSWERS["talk"][0]
            ended.wait(10)
        else:
            yield from ANSWERS["talk"]

    async with served("talk", play) as (gateway, _):
        await gateway.chat(messages=HELLO)
        asked: Json = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "wait"}]}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=asked) as response:
            async for _ in response.aiter_bytes():
                break
        assert await asyncio.to_thread(ended.wait, 5)
        after = await gateway.chat(messages=HELLO)
    assert after.status_code == 200


async def test_the_backend_is_told_how_much_time_is_left() -> None:
    async with served("talk", sends(ANSWERS["talk"]), timeouts={"total": 90}) as (gateway, backend):
        await gateway.chat(messages=HELLO)
    assert 80 < backend.seconds[0] <= 90
