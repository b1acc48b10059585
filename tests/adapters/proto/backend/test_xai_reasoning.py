"""xAI's encrypted reasoning comes back to it with each turn that has some, from clients of each API.

Source: xai-sdk 1.21, `Chat.append`: a response goes back with `reasoning_content`, `encrypted_content` and its calls in
one message; `process_chunk` joins the pieces of each.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict

from adapters.proto.backend import ProtoAdapter
from adapters.proto.backend.schema import Schema, message_class
from gateway.core.conversation import Conversation, Json, Reasoning, Text, Turn
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.proto.backend.grpc_server import Context, GrpcBackend, grpc_backend
from tests.adapters.proto.backend.test_presets import options

XAI: Final = options("xai")
METHOD: Final = Schema(XAI.schema).method(XAI.method)
# Any: JSON of the APIs, which a test takes apart.
Object: TypeAlias = dict[str, Any]


def _call(name: str) -> Object:
    return {
        "id": f"id_{name}",
        "type": "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL",
        "function": {"name": name, "arguments": "{}"},
    }


def _delta(**fields: Json) -> Object:
    return {"id": "r", "model": "grok", "outputs": [{"delta": fields}]}


# The state in pieces among the reasoning, before two calls; behind a call; behind the text.
ANSWERS: Final = [
    [
        _delta(reasoningContent="Hm", encryptedContent="first-"),
        _delta(reasoningContent="."),
        _delta(encryptedContent="state"),
        _delta(toolCalls=[_call("look"), _call("walk")]),
        {"outputs": [{"finishReason": "REASON_TOOL_CALLS"}]},
    ],
    [
        _delta(content="Once more: "),
        _delta(toolCalls=[_call("turn")]),
        {"outputs": [{"delta": {"encryptedContent": "second"}, "finishReason": "REASON_TOOL_CALLS"}]},
    ],
    [_delta(content="A cat."), {"outputs": [{"delta": {"encryptedContent": "third"}, "finishReason": "REASON_STOP"}]}],
    [_delta(content="Yes."), {"outputs": [{"finishReason": "REASON_STOP"}]}],
]
CALLS: Final = [["look", "walk"], ["turn"], [], []]
STATES: Final = ["first-state", "second", "third"]


def play(request: bytes, context: Context) -> Iterator[bytes]:
    """Sends the answer that follows those in the request."""
    turns = said(shown(message_class(METHOD.request).FromString(request)))
    for message in ANSWERS[len(turns)]:
        yield ParseDict(message, message_class(METHOD.response)()).SerializeToString()


def shown(request: Any) -> Object:
    described: Object = MessageToDict(request, preserving_proto_field_name=True)
    return described


def _tool(name: str) -> Object:
    return {"name": name, "parameters": {"type": "object"}}


NAMES: Final = ("look", "walk", "turn")


Client: TypeAlias = Callable[[RunningGateway], Awaitable[None]]


async def streamed_chat(gateway: RunningGateway) -> None:
    await chat(gateway, stream=True)


async def bare_chat(gateway: RunningGateway) -> None:
    """Sends back what most clients do: the text and the calls."""
    await chat(gateway, kept=("role", "content", "tool_calls"))


async def chat(gateway: RunningGateway, stream: bool = False, kept: Sequence[str] = ()) -> None:
    messages: list[Json] = [{"role": "user", "content": "Where?"}]
    tools: list[Json] = [{"type": "function", "function": _tool(name)} for name in NAMES]
    for turn in range(len(ANSWERS)):
        response = await gateway.chat(messages=messages, tools=tools, stream=stream)
        assert response.status_code == 200, response.text
        answer = joined(response.text) if stream else response.json()["choices"][0]["message"]
        calls = answer.get("tool_calls") or []
        assert [call["function"]["name"] for call in calls] == CALLS[turn]
        messages.append({name: value for name, value in answer.items() if not kept or name in kept})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "A door."} for call in calls]
        if not calls:
            messages.append({"role": "user", "content": "Sure?"})


def joined(stream: str) -> Object:
    """The message that the chunks of a stream make, as the SDKs collect it."""
    message: Object = {"role": "assistant", "content": "", "tool_calls": []}
    for line in stream.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message |= {"extra_content": delta["extra_content"]} if "extra_content" in delta else {}
            if "reasoning_content" in delta:
                message["reasoning_content"] = message.get("reasoning_content", "") + delta["reasoning_content"]
            for piece in delta.get("tool_calls", []):
                if piece["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({**piece, "function": {**piece["function"], "arguments": ""}})
                call = message["tool_calls"][piece["index"]]
                call["function"]["arguments"] += piece["function"].get("arguments", "")
    return {name: value for name, value in message.items() if value}


async def messages(gateway: RunningGateway) -> None:
    history: list[Json] = [{"role": "user", "content": "Where?"}]
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in NAMES]
    for turn in range(len(ANSWERS)):
        body: Object = {"model": "m", "max_tokens": 99, "messages": history, "tools": tools}
        response = await gateway.client.post("/v1/messages", json=body)
        assert response.status_code == 200, response.text
        content = response.json()["content"]
        calls = [block for block in content if block["type"] == "tool_use"]
        assert [call["name"] for call in calls] == CALLS[turn]
        results: list[Json] = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "A door."} for call in calls
        ]
        history.append({"role": "assistant", "content": content})
        history.append({"role": "user", "content": [*results] or "Sure?"})


async def responses(gateway: RunningGateway) -> None:
    items: list[Json] = [{"role": "user", "content": "Where?"}]
    tools = [{"type": "function", **_tool(name)} for name in NAMES]
    for turn in range(len(ANSWERS)):
        body = {
            "model": "m",
            "input": items,
            "tools": tools,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        response = await gateway.client.post("/v1/responses", json=body)
        assert response.status_code == 200, response.text
        output = response.json()["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        assert [call["name"] for call in calls] == CALLS[turn]
        items += output
        items += [{"type": "function_call_output", "call_id": call["call_id"], "output": "A door."} for call in calls]
        if not calls:
            items.append({"role": "user", "content": "Sure?"})


@asynccontextmanager
async def running_xai(**settings: Json) -> AsyncIterator[tuple[RunningGateway, GrpcBackend]]:
    """The gateway before a server that plays the answers."""
    with grpc_backend(METHOD.path, play) as backend:
        entry: Json = {"adapter": "proto", "preset": "xai", "base_url": backend.base_url}
        served: dict[str, Json] = {"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway({**served, **settings}) as gateway:
            yield gateway, backend


def asked(backend: GrpcBackend) -> list[Object]:
    return [shown(message_class(METHOD.request).FromString(one)) for one in backend.requests]


def said(request: Object) -> list[Object]:
    return [message for message in request["messages"] if message["role"] == "ROLE_ASSISTANT"]


def states(backend: GrpcBackend) -> list[list[str | None]]:
    """The state of each turn of the assistant, of each request."""
    return [[message.get("encrypted_content") for message in said(request)] for request in asked(backend)]


ALL: Final = [[*STATES, None][:turn] for turn in range(len(ANSWERS))]


@pytest.mark.parametrize("client", [chat, streamed_chat, responses], ids=lambda client: client.__name__)
async def test_encrypted_reasoning_returns_with_every_turn(client: Client) -> None:
    async with running_xai() as (gateway, backend):
        await client(gateway)
    assert states(backend) == ALL
    for turn, request in enumerate(asked(backend)):
        assert request["use_encrypted_content"]
        turns = said(request)
        assert [message.get("reasoning_content") for message in turns] == ["Hm.", None, None, None][:turn]
        called = [[call["function"]["name"] for call in message.get("tool_calls", [])] for message in turns]
        assert called == CALLS[:turn]
        results = [message["tool_call_id"] for message in request["messages"] if message["role"] == "ROLE_TOOL"]
        assert results == [call["id"] for message in turns for call in message.get("tool_calls", [])]


@pytest.mark.parametrize("client", [bare_chat, messages], ids=lambda client: client.__name__)
async def test_the_state_cache_keeps_it_for_clients_without_a_place_for_it(client: Client) -> None:
    async with running_xai() as (gateway, backend):
        await client(gateway)
    assert states(backend) == [[None] * turn for turn in range(len(ANSWERS))]
    async with running_xai(keeper={"enabled": True}) as (gateway, backend):
        await client(gateway)
    assert states(backend) == ALL


def test_reasoning_without_state_of_xai_is_not_sent_and_told() -> None:
    extra = with_provider_state("other", {"encrypted_content": "x"})
    turns = (
        Turn("user", (Text("Where?"),), index=0),
        Turn("assistant", (Reasoning("Hm.", extra=extra), Text("Here.")), index=1),
        Turn("user", (Text("Sure?"),), index=2),
    )
    made = ProtoAdapter(XAI, 1 << 20)
    request = made.encode(Conversation(turns, model="m"), Policy())
    described: Any = made.describe(request.body)
    assert described["messages"][1] == {"role": "ROLE_ASSISTANT", "content": [{"text": "Here."}]}
    assert [notice.rule for notice in request.notices] == ["REASONING_NOT_SENT"]
