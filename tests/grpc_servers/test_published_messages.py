"""Servers of grpcio that speak with the published messages of a provider, behind the preset for it.

The messages that they get and send are those of the provider's own package; nothing here uses the schema of the preset.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict

from adapters.proto.backend.schema import message_class
from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.grpc_servers.installed import needs
from tests.grpc_servers.published import PUBLISHED, Published
from tests.grpc_servers.scripted_answer import ScriptedAnswer
from tests.grpc_servers.server_process import scripted_server
from tests.grpc_servers.wires import PROGRAMS
from tests.promises.wire_gateway import finishes, frames, text_of

pytestmark = [pytest.mark.grpc, needs("schemas")]
TOOL: Final[Json] = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}
MESSAGES: Final[list[Json]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Look!"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 3}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "A door."},
    {"role": "user", "content": "Again, 日本."},
]
REQUEST: Final[dict[str, Json]] = {
    "messages": MESSAGES,
    "tools": [TOOL],
    "tool_choice": "required",
    "max_tokens": 9,
    "temperature": 0.5,
}


class Exchange(msgspec.Struct, frozen=True):
    """What a client asks, and what the provider's server then receives and answers, in the JSON of its messages. (Any:
    JSON, for protobuf's own parser.)"""

    asks: Mapping[str, Json]
    receives: Json
    answers: Sequence[Any]
    finish: str = "tool_calls"
    calls: tuple[tuple[str, str], ...] = (("look", '{"at":4}'),)
    usage: tuple[int, int] = (7, 5)


# Where a model that goes on would write the next turn.
TURN_STOPS: Final[list[Json]] = ["\n\nUser:", "\n\nSystem:", "\n\nTool result (", "\n\nTool result:"]
# What Gemini's API and Vertex AI receive alike; their numbers of fields differ.
GEMINI: Final[dict[str, Json]] = {
    "system_instruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Look!"}]},
        {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"at": 3}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "look", "response": {"result": "A door."}}}]},
        {"role": "user", "parts": [{"text": "Again, 日本."}]},
    ],
    "tools": [
        {
            "function_declarations": [
                {"name": "look", "description": "Looks.", "parameters_json_schema": {"type": "object"}}
            ]
        }
    ],
    "tool_config": {"function_calling_config": {"mode": "ANY"}},
    "generation_config": {"max_output_tokens": 9, "temperature": 0.5},
}
GEMINI_ANSWERS: Final[Sequence[Any]] = [
    {"candidates": [{"content": {"role": "model", "parts": [{"thought": True, "text": "Hm."}]}}]},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Looking."}]}}]},
    {
        "candidates": [
            {"content": {"parts": [{"function_call": {"name": "look", "args": {"at": 4}}}]}, "finish_reason": "STOP"}
        ],
        "usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 5, "total_token_count": 12},
    },
]
DYNAMO: Final[dict[str, Json]] = {
    "model_name": "m",
    "id": 36,
    "inputs": [
        {
            "name": "text_input",
            "datatype": "BYTES",
            "shape": ["1"],
            "contents": {"bytes_contents": [base64.b64encode(b"User: Look!\n\nAssistant:").decode()]},
        },
        {"name": "streaming", "datatype": "BOOL", "shape": ["1"], "contents": {"bool_contents": [True]}},
    ],
}


def dynamo(text: str, reason: str) -> Json:
    """A message of Dynamo's frontend: both tensors are typed, and there is no reason yet while the second is empty."""
    tensors = (("text_output", text), ("finish_reason", reason))
    return {
        "infer_response": {
            "model_name": "m",
            "model_version": "1",
            "outputs": [
                {
                    "name": name,
                    "datatype": "BYTES",
                    "shape": [1],
                    "contents": {"bytes_contents": [base64.b64encode(value.encode()).decode()]},
                }
                for name, value in tensors
            ],
        }
    }


EXCHANGES: Final[Mapping[str, Exchange]] = {
    "xai": Exchange(
        REQUEST,
        {
            "model": "m",
            "messages": [
                {"role": "ROLE_SYSTEM", "content": [{"text": "Be brief."}]},
                {"role": "ROLE_USER", "content": [{"text": "Look!"}]},
                {
                    "role": "ROLE_ASSISTANT",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL",
                            "function": {"name": "look", "arguments": '{"at": 3}'},
                        }
                    ],
                },
                {"role": "ROLE_TOOL", "tool_call_id": "c1", "content": [{"text": "A door."}]},
                {"role": "ROLE_USER", "content": [{"text": "Again, 日本."}]},
            ],
            "tools": [{"function": {"name": "look", "description": "Looks.", "parameters": '{"type":"object"}'}}],
            "tool_choice": {"mode": "TOOL_MODE_REQUIRED"},
            "max_tokens": 9,
            "temperature": 0.5,
            "use_encrypted_content": True,
        },
        [
            {
                "id": "r1",
                "model": "grok",
                "outputs": [{"delta": {"reasoning_content": "Hm.", "encrypted_content": "x"}}],
            },
            {"id": "r1", "outputs": [{"delta": {"content": "Looking."}}]},
            {
                "outputs": [
                    {
                        "delta": {
                            "tool_calls": [
                                {
                                    "id": "c2",
                                    "type": "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL",
                                    "function": {"name": "look", "arguments": '{"at":4}'},
                                }
                            ]
                        }
                    }
                ]
            },
            {
                "outputs": [{"finish_reason": "REASON_TOOL_CALLS"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 5},
            },
        ],
    ),
    "gemini_grpc": Exchange(REQUEST, {**GEMINI, "model": "models/m"}, GEMINI_ANSWERS),
    "vertex_grpc": Exchange(REQUEST, {**GEMINI, "model": "m"}, GEMINI_ANSWERS),
    "vertex_grpc_level": Exchange(
        {**REQUEST, "reasoning_effort": "high"},
        {
            **GEMINI,
            "model": "m",
            "generation_config": {
                "max_output_tokens": 9,
                "temperature": 0.5,
                "thinking_config": {"include_thoughts": True, "thinking_level": "HIGH"},
            },
        },
        GEMINI_ANSWERS,
    ),
    # It reports no counts, so that those are the gateway's own.
    "dynamo": Exchange(
        {"messages": MESSAGES[1:2], "max_tokens": 9, "temperature": 0.5},
        DYNAMO,
        [dynamo("Look", ""), dynamo("ing.", ""), dynamo("", "stop")],
        finish="stop",
        calls=(),
        usage=(6, 2),
    ),
    # What its frontend sends where it does not stream.
    "dynamo, one message": Exchange(
        {"messages": MESSAGES[1:2]}, DYNAMO, [dynamo("Looking.", "length")], finish="length", calls=(), usage=(6, 2)
    ),
    "tgis": Exchange(
        {"messages": MESSAGES[1:2], "max_tokens": 9, "temperature": 0.5},
        {
            "model_id": "m",
            "request": {"text": "User: Look!\n\nAssistant:"},
            "params": {
                "method": "SAMPLE",
                "sampling": {"temperature": 0.5},
                "stopping": {"max_new_tokens": 9, "stop_sequences": TURN_STOPS},
            },
        },
        [
            {"input_token_count": 7},
            {"generated_token_count": 2, "text": "Look"},
            {"generated_token_count": 5, "text": "ing.", "stop_reason": "EOS_TOKEN"},
        ],
        finish="stop",
        calls=(),
    ),
}


@pytest.mark.parametrize("name", EXCHANGES)
async def test_a_preset_speaks_the_published_messages(name: str) -> None:
    exchange, name = EXCHANGES[name], name.partition(",")[0]
    published = PUBLISHED[name]
    assert isinstance(published, Published)
    request, response = published.messages()
    messages = tuple(ParseDict(one, message_class(response)()).SerializeToString() for one in exchange.answers)
    program = PROGRAMS["grpcio"]
    async with scripted_server(program.command, {"it": ScriptedAnswer(messages)}) as server:
        backend: Json = {
            "adapter": "proto",
            "preset": name,
            "base_url": f"http://127.0.0.1:{server.ports['port']}/it",
        }
        async with running_gateway({"backends": {"b": backend}, "models": {"m": {"backend": "b"}}}) as gateway:
            whole = await gateway.chat(**exchange.asks)
            streamed = await gateway.chat(**exchange.asks, stream=True)
        assert whole.status_code == 200, whole.text
        told = await server.event("request", "it")
    received = message_class(request).FromString(base64.b64decode(told["message"]))
    got = MessageToDict(received, preserving_proto_field_name=True)
    # A UUID that no other request has.
    assert got | ({"id": len(got["id"])} if "id" in got else {}) == exchange.receives
    choice, usage = whole.json()["choices"][0], whole.json()["usage"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Looking.", exchange.finish)
    calls = [tuple(one["function"].values()) for one in choice["message"].get("tool_calls", [])]
    assert calls == [*exchange.calls]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == exchange.usage
    *data, done = frames(streamed.text)
    assert (text_of(data), finishes(data), done) == ("Looking.", [exchange.finish], "[DONE]")
