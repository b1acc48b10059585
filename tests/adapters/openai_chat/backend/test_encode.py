import json
from typing import Any

import msgspec
import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.adapter import Adapter
from gateway.core.conversation import (
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    NamedTool,
    Reasoning,
    Sampling,
    Source,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.policy import Policy
from gateway.providers.profile import Profile


def adapter(**options: str) -> Adapter:
    return OpenAIChatAdapter(msgspec.convert(options, OpenAIChatOptions), 1 << 20)


def sent(conversation: Conversation, policy: Policy = Policy()) -> Any:  # noqa: B008 # Any: read with json; frozen
    return json.loads(adapter().encode(conversation, policy).body)


def message(*turns: Turn) -> Any:  # Any: read with json
    return sent(Conversation(turns, model="m", dialect="openai_chat"))["messages"]


@pytest.mark.parametrize(("stream", "accept"), [(True, "text/event-stream"), (False, "application/json")])
def test_the_request_asks_for_what_the_client_asked_for(stream: bool, accept: str) -> None:
    request = adapter().encode(Conversation((Turn("user", ()),), model="m", stream=stream), Policy())
    assert (request.method, request.path, request.headers["accept"]) == ("POST", "/chat/completions", accept)
    assert request.accepts == ("text/event-stream", "application/json")
    assert adapter(path="/v2/chat").encode(Conversation(()), Policy()).path == "/v2/chat"


def test_only_the_changed_turn_is_written_anew() -> None:
    source: JsonObject = {"role": "user", "content": "x", "odd": [1], "null": None}
    turns = Turn("user", (Text("y"),), source=Source("openai_chat", source)), Turn("user", (Text("y"),))
    assert message(*turns) == [source, {"role": "user", "content": "y"}]


CALL = ToolCall("a", "f", "{}", {"extra_content": {"g": 1}, "function": {"strict": True}})
WRITTEN = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}", "strict": True}}


@pytest.mark.parametrize(
    ("turn", "messages"),
    [
        (Turn("system", (Text("x"),), "bo"), [{"role": "system", "content": "x", "name": "bo"}]),
        (Turn("user", ()), [{"role": "user", "content": ""}]),
        (
            Turn("user", (Text("x"), Text("y", {"cache_control": 1}))),
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y", "cache_control": 1}],
                }
            ],
        ),
        (
            Turn("user", (Image("u", {"detail": "low", "x": 1}), File("file", {"type": "file", "file": {}}))),
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": "u", "detail": "low"}, "x": 1},
                        {"type": "file", "file": {}},
                    ],
                }
            ],
        ),
        (
            Turn("assistant", (Reasoning("h"), Reasoning("m"), Reasoning("r", "reasoning"), Text("x"), CALL)),
            [
                {
                    "role": "assistant",
                    "content": "x",
                    "reasoning_content": "hm",
                    "reasoning": "r",
                    "tool_calls": [{**WRITTEN, "extra_content": {"g": 1}}],
                }
            ],
        ),
        (
            Turn("assistant", (ToolCall("a", "c", "i", {"type": "custom"}),)),
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "c", "input": "i"}}],
                }
            ],
        ),
        (
            Turn("assistant", (Text("No.", {"type": "refusal"}),), extra={"odd": 1}),
            [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "odd": 1}],
        ),
        (
            Turn("tool", (ToolResult("a", (Text("x"),)), ToolResult("b", ()), Text("and"))),
            [
                {"role": "tool", "tool_call_id": "a", "content": "x"},
                {"role": "tool", "tool_call_id": "b", "content": ""},
                {"role": "user", "content": "and"},
            ],
        ),
        (
            Turn("tool", (ToolResult("a", (Text("x"),)),), "f"),
            [{"role": "tool", "tool_call_id": "a", "content": "x", "name": "f"}],
        ),
    ],
)
def test_a_turn_without_a_source_is_written_from_its_blocks(turn: Turn, messages: Json) -> None:
    assert message(turn) == messages


def test_a_request_of_another_dialect_is_written_from_its_values() -> None:
    tools = (ToolSpec("f", "Finds.", {"type": "object"}, True), ToolSpec("g"))
    conversation = Conversation(
        (Turn("user", (Text("x"),)),),
        tools,
        NamedTool("f"),
        False,
        "m",
        Sampling(0.5, None, 9, ("END",), 3),
        True,
        True,
    )
    assert sent(conversation) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0.5,
        "max_tokens": 9,
        "stop": ["END"],
        "seed": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "Finds.",
                    "parameters": {"type": "object"},
                    "strict": True,
                },
            },
            {"type": "function", "function": {"name": "g"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
    }


def test_the_input_of_a_custom_tool_is_no_object() -> None:
    call = ToolCall("a", "c", '{"n": 1}', {"type": "custom"})
    conversation = Conversation((Turn("assistant", (call,)),), model="m")
    (written,) = sent(conversation, Policy(profile=Profile(arguments="object")))["messages"]
    assert written["tool_calls"][0]["custom"]["input"] == '{"n": 1}'


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('{"n": 1}', {"n": 1}), ("{", {"arguments": "{"}), ("[1]", {"arguments": "[1]"}), ("", {}), (" ", {})],
)
def test_arguments_as_objects_where_the_provider_wants_them(text: str, arguments: Json) -> None:
    conversation = Conversation((Turn("assistant", (ToolCall("a", "f", text),)),), model="m")
    (written,) = sent(conversation, Policy(profile=Profile(arguments="object")))["messages"]
    assert written["tool_calls"][0]["function"]["arguments"] == arguments


def test_the_backend_streams_when_the_gateway_says_so() -> None:
    params: JsonObject = {"model": "m", "stream": True}
    conversation = Conversation((Turn("user", (Text("x"),)),), model="m", params=params, dialect="openai_chat")
    assert sent(conversation)["stream"] is False


def test_a_choice_in_words_is_written_too() -> None:
    conversation = Conversation((Turn("user", (Text("x"),)),), (ToolSpec("f"),), "required", model="m")
    assert sent(conversation)["tool_choice"] == "required"


@pytest.mark.parametrize(("tools", "choice"), [("tools", "tool_choice"), ("functions", "function_call")])
def test_tools_that_a_pass_forbids_are_forbidden_to_the_backend(tools: str, choice: str) -> None:
    params: JsonObject = {"model": "m", tools: [{"name": "f"}]}
    turns = (Turn("user", ()),)
    conversation = Conversation(turns, tool_choice="none", model="m", params=params, dialect="openai_chat")
    assert sent(conversation)[choice] == "none"
    assert choice not in sent(msgspec.structs.replace(conversation, params={"model": "m"}))
