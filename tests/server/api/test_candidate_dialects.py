"""Another model answers in every dialect, whole and streamed, and over a WebSocket; what is of one account stays."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.provider_state import state_label
from gateway.testing.faulty import END, HEAD, Connection, chunk
from tests.server.api.candidate_gateway import (
    OVERLOADED,
    PATIENT,
    ROLE,
    Play,
    asked,
    bodies,
    breaks_off,
    candidates_gateway,
    is_silent,
    said,
    says,
    sse,
)
from tests.server.websocket_client import connected

USER: Final[list[Json]] = [{"role": "user", "content": "Hello"}]
CONTENTS: Final[list[Json]] = [{"role": "user", "parts": [{"text": "Hello"}]}]
# A request of each dialect, whole and as a stream.
REQUESTS: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": USER}),
    "chat stream": ("/v1/chat/completions", {"model": "m", "messages": USER, "stream": True}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 50, "messages": USER}),
    "messages stream": ("/v1/messages", {"model": "m", "max_tokens": 50, "messages": USER, "stream": True}),
    "responses": ("/v1/responses", {"model": "m", "input": "Hello"}),
    "responses stream": ("/v1/responses", {"model": "m", "input": "Hello", "stream": True}),
    "gemini": ("/v1beta/models/m:generateContent", {"contents": CONTENTS}),
    "gemini stream": ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": CONTENTS}),
    "ollama": ("/api/chat", {"model": "m", "messages": USER, "stream": False}),
    "ollama stream": ("/api/chat", {"model": "m", "messages": USER}),
}
# Those that stand once in each stream, where it begins and where it ends.
ONCE: Final[Mapping[str, tuple[str, ...]]] = {
    "messages stream": ("event: message_start", "event: message_stop"),
    "responses stream": ("event: response.created", "event: response.completed"),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_every_dialect_gets_the_answer_of_the_other_model_alone(name: str) -> None:
    path, body = REQUESTS[name]
    first = breaks_off(ROLE) if "stream" in name else OVERLOADED
    async with candidates_gateway({"m": first, "n": says("alpha- beta-")}) as (gateway, backends):
        response = await gateway.client.post(path, json=body)
    assert response.status_code == 200, response.text
    assert response.headers["x-dragoman-backend"] == "n"
    assert asked(backends) == {"m": 1, "n": 1}
    for mark in ONCE.get(name, ()):
        assert response.text.count(mark) == 1
    if name in ONCE:
        deltas = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
        texts = [_text(one) for one in deltas if one["type"] in ("content_block_delta", "response.output_text.delta")]
        assert texts == ["alpha-", "beta-"]
    elif "stream" not in name:
        assert response.text.count("alpha-beta-") == 1
    else:
        assert (response.text.count("alpha-"), response.text.count("beta-")) == (1, 1)


def _text(event: Any) -> str:
    delta = event["delta"]
    return str(delta if isinstance(delta, str) else delta["text"])


@pytest.mark.parametrize("name", REQUESTS)
async def test_every_dialect_gets_the_first_error_in_its_own_form(name: str) -> None:
    path, body = REQUESTS[name]
    async with candidates_gateway({"m": OVERLOADED, "n": OVERLOADED}) as (gateway, backends):
        response = await gateway.client.post(path, json=body)
        alone = await gateway.client.post(path.replace("/m:", "/n:"), json={**body, "model": "n"})
    assert response.status_code == alone.status_code == 503
    assert response.json().keys() == alone.json().keys()
    assert asked(backends) == {"m": 1, "n": 2}


async def test_over_a_websocket_an_answer_has_one_beginning() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.5}
    server: Json = {"api_keys_env": None, "first_event_gate_s": 0.1, "sse_ping_s": 0.1}
    plays = {"m": is_silent, "n": says("alpha- beta-")}
    async with (
        candidates_gateway(plays, timeouts=hasty, server=server) as (gateway, backends),
        connected(gateway) as socket,
    ):
        socket.send({"type": "response.create", "model": "m", "input": "Hello"})
        events = await asyncio.wait_for(socket.answer(), 20)
    kinds = [event["type"] for event in events]
    assert kinds.count("response.created") == kinds.count("response.completed") == 1
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["alpha-", "beta-"]
    assert asked(backends) == {"m": 1, "n": 1}


async def _fails_behind_a_call(connection: Connection) -> None:
    call: Json = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}
    calling: Json = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    begun = sse({"id": "x", "object": "chat.completion.chunk", "choices": [calling]})
    await connection.send(HEAD, chunk(begun + sse({"error": {"message": "busy", "code": 503}})), END)


@pytest.mark.parametrize("first", [OVERLOADED, _fails_behind_a_call])
async def test_an_answer_of_another_model_may_be_steered(first: Play) -> None:
    async def waits(connection: Connection) -> None:
        if b"Stop" in connection.body:
            await says("later")(connection)
            return
        await connection.send(HEAD, chunk(ROLE), chunk(said("alpha-")))
        await connection.gone()

    async with (
        candidates_gateway({"m": first, "n": waits}) as (gateway, backends),
        connected(gateway) as socket,
        asyncio.timeout(20),
    ):
        tool: Json = {"type": "function", "name": "f", "parameters": {"type": "object"}}
        socket.send({"type": "response.create", "model": "m", "input": "Hello", "tools": [tool]})
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] != "response.output_text.delta":
            events.append(await socket.event())
        answer_id = events[0]["response"]["id"]
        message: Json = {"type": "message", "role": "user", "content": "Stop"}
        socket.send({"type": "response.steer", "previous_response_id": answer_id, "input": [message]})
        while events[-1]["type"] != "response.completed":
            events.append(await socket.event())
    kinds = [event["type"] for event in events]
    assert kinds.count("response.incomplete") == 1
    # The successor is a request of its own, for the model that the client has named.
    assert asked(backends) == {"m": 2, "n": 2}


async def test_signatures_reach_their_own_backend_alone() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": says("yes")}) as (gateway, backends):
        own = state_label("openai_chat", f"127.0.0.1:{backends['m'].port}", "")
        response = await gateway.chat(messages=_signed(f"{own}SECRET"))
        unlabelled = await gateway.chat(messages=_signed("SECRET"))
    assert (response.status_code, unlabelled.status_code) == (200, 503)
    assert asked(backends) == {"m": 2, "n": 1}
    assert "SECRET" in json.dumps(bodies(backends["m"])[0])
    assert "SECRET" not in json.dumps(bodies(backends["n"])[0])


def _signed(signature: str) -> list[Json]:
    call: Json = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": signature}},
    }
    assistant: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [*USER, assistant, {"role": "tool", "tool_call_id": "c1", "content": "done"}]


async def test_the_state_of_an_answer_has_the_label_of_its_own_backend() -> None:
    extra: Json = {"google": {"thought_signature": "S1"}}
    function: Json = {"name": "f", "arguments": "{}"}
    call: Json = {"index": 0, "id": "c1", "type": "function", "function": function, "extra_content": extra}
    calling: Json = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    ending: Json = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    events = [{"id": "x", "object": "chat.completion.chunk", "choices": [one]} for one in (calling, ending)]
    pieces = [chunk(b"data: " + json.dumps(one).encode() + b"\n\n") for one in events]

    async def calls(connection: Connection) -> None:
        await connection.send(HEAD, *pieces, chunk(b"data: [DONE]\n\n"), END)

    async with candidates_gateway({"m": OVERLOADED, "n": calls}) as (gateway, backends):
        tools: Json = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        response = await gateway.chat(stream=True, tools=tools)
        label = state_label("openai_chat", f"127.0.0.1:{backends['n'].port}", "")
    assert f"{label}S1" in response.text


COMPACTING: Final[dict[str, Json]] = {
    "model": "m",
    "max_tokens": 50,
    "messages": USER,
    "context_management": {
        "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
    },
}
BETA: Final = {"anthropic-beta": "compact-2026-01-12"}


async def test_a_compaction_that_is_not_due_leaves_a_request_like_any_other() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": says("alpha-")}) as (gateway, backends):
        response = await gateway.client.post("/v1/messages", json=COMPACTING, headers=BETA)
    assert response.status_code == 200, response.text
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_backend_that_compacts_itself_keeps_the_request() -> None:
    own: dict[str, dict[str, Json]] = {"m": {"adapter": "anthropic_messages", "profile": "anthropic"}}
    async with candidates_gateway({"m": OVERLOADED, "n": says("alpha-")}, backends=own) as (gateway, backends):
        response = await gateway.client.post("/v1/messages", json=COMPACTING, headers=BETA)
        plain = await gateway.client.post("/v1/messages", json={**COMPACTING, "context_management": None})
    assert (response.status_code, plain.status_code) == (503, 200)
    assert asked(backends) == {"m": 2, "n": 1}


async def test_a_history_has_the_limits_of_the_model_that_is_asked() -> None:
    turns: list[Json] = []
    for at in range(12):
        turns += [
            {"role": "user", "content": f"question {at} " + "word " * 60},
            {"role": "assistant", "content": f"answer {at} " + "word " * 60},
        ]
    turns.append({"role": "user", "content": "And now?"})
    models: dict[str, dict[str, Json]] = {
        "m": {"context_length": 1500, "max_history_messages": 4},
        "n": {"context_length": 100_000},
    }
    async with candidates_gateway({"m": OVERLOADED, "n": says("alpha-")}, models=models) as (gateway, backends):
        response = await gateway.chat(messages=turns)
    assert response.status_code == 200
    assert len(bodies(backends["m"])[0]["messages"]) < len(turns)
    assert len(bodies(backends["n"])[0]["messages"]) == len(turns)
