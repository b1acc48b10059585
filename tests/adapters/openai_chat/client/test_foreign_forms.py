"""Cursor's requests, and histories with blocks of the Messages API, are read as what they are.

What Cursor sends is told in public reports of proxies that serve it; the forms are those of the published types of the
packages openai and anthropic.
"""

import json
from typing import Any, Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Image, NamedTool, Text
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.exchange import Exchange

SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION: Final = {"name": "f", "description": "does f", "parameters": SCHEMA, "strict": True}
HELLO: Final = [{"role": "user", "content": "hi"}]
CURSOR: Final = {
    "model": "m",
    "input": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": "x"}'},
        {"type": "function_call_output", "call_id": "c", "output": "seen"},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "tool_choice": "auto",
    "reasoning": {"effort": "medium"},
    "stream": True,
    "stream_options": {"include_usage": True},
}
ADAPTERS: Final[list[Adapter]] = [
    OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20),
    AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20),
]


def read(**fields: Any) -> Conversation:
    return decode(json.dumps({"model": "m", **fields}).encode())


def sent(conversation: Conversation, adapter: Adapter = ADAPTERS[0]) -> Any:
    return json.loads(Exchange(adapter, conversation, Policy()).request.body)


def rules(conversation: Conversation) -> list[tuple[str, int, str]]:
    return [(fault.rule, fault.index, fault.param) for fault in conversation.faults]


def test_a_body_of_the_responses_api_is_read_as_one_and_goes_to_a_chat_backend_as_chat() -> None:
    conversation = read(**CURSOR)
    assert rules(conversation) == [("FOREIGN_FORM", -1, "input")]
    assert (conversation.stream, conversation.include_usage) == (True, True)
    body = sent(conversation)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": "x"}'}
    assert body["tools"] == [{"type": "function", "function": FUNCTION}]
    assert (body["reasoning_effort"], body["stream"]) == ("medium", True)
    assert "input" not in body and "reasoning" not in body


def test_its_client_gets_the_usage_of_a_stream_only_if_it_asks_for_it() -> None:
    assert read(**{**CURSOR, "stream_options": None}).include_usage is False


@pytest.mark.parametrize("body", [{"messages": HELLO, "input": "hi"}, {}])
def test_a_body_that_is_both_or_neither_is_refused_with_both_names(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"messages.*input"):
        read(**body)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=["chat", "Messages"])
@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", **FUNCTION},
        FUNCTION,
        {"name": "f", "description": "does f", "input_schema": SCHEMA, "strict": True},
        {"type": "custom", "name": "f", "description": "does f", "input_schema": SCHEMA, "strict": True},
    ],
)
def test_a_tool_of_another_api_is_the_function_that_it_stands_for(tool: dict[str, Any], adapter: Adapter) -> None:
    conversation = read(messages=HELLO, tools=[tool])
    assert rules(conversation) == [("FOREIGN_FORM", -1, "tools[0]")]
    assert sent(conversation, adapter)["tools"] == sent(read(messages=HELLO, tools=[PLAIN]), adapter)["tools"]


PLAIN: Final = {"type": "function", "function": FUNCTION}


@pytest.mark.parametrize(
    ("form", "nested"),
    [
        (None, None),
        ({"type": "text"}, {"type": "text"}),
        (
            {"type": "grammar", "syntax": "lark", "definition": "start: x"},
            {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}},
        ),
        (
            {"type": "grammar", "grammar": {"syntax": "regex", "definition": "x"}},
            {"type": "grammar", "grammar": {"syntax": "regex", "definition": "x"}},
        ),
    ],
)
def test_a_flat_custom_tool_is_one_of_chat_completions(form: Any, nested: Any) -> None:
    tool = {"type": "custom", "name": "patch", "description": "d", **({"format": form} if form else {})}
    custom = {"name": "patch", "description": "d", **({"format": nested} if nested else {})}
    assert sent(read(messages=HELLO, tools=[tool]))["tools"] == [{"type": "custom", "custom": custom}]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "function", "name": "f"}, NamedTool("f")),
        ({"type": "tool", "name": "f"}, NamedTool("f")),
        ({"type": "any"}, "required"),
        ("any", "required"),
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
    ],
)
def test_a_tool_choice_of_another_api_is_read(choice: dict[str, str] | str, expected: object) -> None:
    conversation = read(messages=HELLO, tools=[PLAIN], tool_choice=choice)
    assert conversation.tool_choice == expected
    assert rules(conversation) == [("FOREIGN_FORM", -1, "tool_choice")]
    word = expected if isinstance(expected, str) else {"type": "function", "function": {"name": "f"}}
    assert sent(conversation)["tool_choice"] == word


BRIDGED: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "x"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "r"}], "is_error": True},
            {"type": "text", "text": "and?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ],
    },
]


def test_blocks_of_the_messages_api_are_calls_results_and_images() -> None:
    conversation = read(messages=BRIDGED, tools=[PLAIN])
    assert rules(conversation) == [
        ("FOREIGN_FORM", 1, "messages[1].content"),
        ("FOREIGN_FORM", 2, "messages[2].content"),
    ]
    _, called, brought, asked = conversation.turns
    assert [(call.id, call.name, json.loads(call.arguments)) for call in called.calls] == [("t1", "f", {"a": "x"})]
    assert [(result.call_id, result.text, result.is_error) for result in brought.results] == [("t1", "r", True)]
    assert asked.blocks == (Text("and?"), Image("data:image/png;base64,AAAA", item=2))


@pytest.mark.parametrize("repair", ["repair", "off"])
def test_a_chat_backend_never_sees_such_a_block(repair: Any) -> None:
    conversation = read(messages=BRIDGED, tools=[PLAIN])
    body = json.loads(Exchange(ADAPTERS[0], conversation, Policy(repair=repair)).request.body)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert "tool_use" not in json.dumps(body) and "tool_result" not in json.dumps(body)


def test_a_call_in_both_forms_is_one_call() -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": "x"}'}}
    message = {**BRIDGED[1], "tool_calls": [call]}
    assert len(read(messages=[BRIDGED[0], message, BRIDGED[2]]).turns[1].calls) == 1


def test_parts_of_chat_completions_are_not_taken_for_blocks() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "file", "file": {"file_id": "x"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    conversation = read(messages=[{"role": "user", "content": parts}], tools=[PLAIN], tool_choice="required")
    assert conversation.faults == ()
    assert sent(conversation)["messages"] == [{"role": "user", "content": parts}]
