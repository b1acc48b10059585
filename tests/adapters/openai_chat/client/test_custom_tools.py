"""A custom tool of a chat client is itself to a backend with such tools, a function to any other, and itself again.

Source: OpenAI, API reference of chat completions and of Responses: custom tools.
"""

import json
from typing import Any, Final

import pytest
from openai.types.chat import ChatCompletion

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend.adapter import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.text.backend import TextAdapter, TextOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import Event, Finish, ResponseStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.testing.dialect_case import HEAD
from tests.adapters.openai_responses.backend.wires import added, delta, done, ended, sse

DIALECT: Final = OpenAIChatDialect()
GRAMMAR: Final = {"syntax": "lark", "definition": 'start: "a"'}
PATCH: Final[dict[str, Any]] = {"type": "custom", "custom": {"name": "patch", "description": "Patches."}}
GUIDED: Final[dict[str, Any]] = {
    "type": "custom",
    "custom": {"name": "guided", "format": {"type": "grammar", "grammar": GRAMMAR}},
}
TEXT: Final = 'a "b"\nü'
CALL: Final[dict[str, Any]] = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": TEXT}}
MESSAGES: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "Done"},
]
BODY: Final[dict[str, Any]] = {"model": "m", "messages": MESSAGES, "tools": [PATCH, GUIDED]}
RESPONSES: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
MESSAGES_API: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)


def exchange(adapter: Adapter, **fields: Any) -> Exchange:
    request = DIALECT.decode(read_document(json.dumps(BODY | fields).encode()), RequestHead("/v1/chat/completions"))
    return Exchange(adapter, request.conversation, Policy())


def sent(adapter: Adapter, **fields: Any) -> Any:
    return json.loads(exchange(adapter, **fields).request.body)


def rules(adapter: Adapter) -> list[str]:
    return [notice.rule for notice in exchange(adapter).notices]


def test_a_backend_of_the_responses_api_gets_the_tool_and_its_calls() -> None:
    body = sent(RESPONSES, tool_choice={"type": "custom", "custom": {"name": "patch"}})
    assert body["tools"] == [
        {"type": "custom", "name": "patch", "description": "Patches."},
        {"type": "custom", "name": "guided", "format": {"type": "grammar", **GRAMMAR}},
    ]
    assert body["tool_choice"] == {"type": "custom", "name": "patch"}
    assert body["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": TEXT},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "Done"},
    ]
    assert not {"TOOL_NOT_SENT", "TOOL_AS_FUNCTION", "FIELD_NOT_SENT"} & {*rules(RESPONSES)}


def test_a_flat_tool_of_the_responses_api_is_one_too() -> None:
    body = sent(RESPONSES, tools=[{"type": "custom", "name": "guided", "format": {"type": "grammar", **GRAMMAR}}])
    assert body["tools"] == [{"type": "custom", "name": "guided", "format": {"type": "grammar", **GRAMMAR}}]


def test_any_other_backend_gets_a_function_with_one_text() -> None:
    body = sent(MESSAGES_API, max_tokens=9)
    patch, guided = body["tools"]
    assert (patch["name"], [*patch["input_schema"]["properties"]]) == ("patch", ["input"])
    assert GRAMMAR["definition"] in guided["description"]
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "patch", "input": {"input": TEXT}}
    ]
    assert rules(MESSAGES_API).count("TOOL_AS_FUNCTION") == 2
    assert "TOOL_NOT_SENT" not in rules(MESSAGES_API)


def test_a_text_names_the_tool() -> None:
    adapter = TextAdapter(TextOptions(), 1 << 20)
    assert b"patch" in exchange(adapter).request.body
    assert "TOOL_NOT_SENT" not in rules(adapter)


def test_a_backend_of_the_same_api_gets_all_as_it_was_written() -> None:
    adapter = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
    assert sent(adapter) == BODY
    # A result that stands elsewhere is put in its place, and the message is written anew.
    odd = [MESSAGES[0], {**MESSAGES[1], "content": 7}, MESSAGES[2]]
    assert sent(adapter, messages=odd)["messages"][1]["tool_calls"] == [CALL]


def encoded(events: list[Event], *, stream: bool) -> list[Any]:
    request = DIALECT.decode(read_document(json.dumps(BODY).encode()), RequestHead("/v1/chat/completions"))
    if not stream:
        return [json.loads(DIALECT.encode_answer(request, HEAD, events))]
    encoder = DIALECT.stream_encoder(request, HEAD)
    written = b"".join([encoder.feed([event]) for event in events]) + encoder.close()
    return [json.loads(frame[6:]) for frame in written.split(b"\n\n") if frame.startswith(b"data: {")]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (['{"in', 'put":"a \\"b\\"', "\\n", '\\u00fc"}'], TEXT),
        (['{"input":""}'], ""),
        ([], ""),
        (["no object"], "no object"),
    ],
)
def test_a_call_comes_back_as_one_of_the_custom_tool(pieces: list[str], text: str) -> None:
    deltas = [ToolCallDelta(0, piece) for piece in pieces]
    events: list[Event] = [
        ResponseStart(),
        ToolCallStart(0, "a", "patch"),
        *deltas,
        ToolCallEnd(0),
        Finish("tool_calls"),
    ]
    (whole,) = encoded(events, stream=False)
    called = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": text}}
    ChatCompletion.model_validate(whole, strict=True)
    assert whole["choices"][0]["message"]["tool_calls"] == [called]
    # The published type of a chunk knows no custom call, with which OpenAI streams its own.
    chunks = encoded(events, stream=True)
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert (calls[0]["type"], calls[0]["custom"]["name"]) == ("custom", "patch")
    assert "".join([call["custom"]["input"] for call in calls]) == text


def test_the_state_of_a_call_stands_beside_its_custom_tool() -> None:
    state: Json = {"google": {"thought_signature": "s"}}
    extra: JsonObject = {"extra_content": state, "function": {"strict": True}}
    events: list[Event] = [ResponseStart(), ToolCallStart(0, "a", "patch", extra=extra), ToolCallEnd(0)]
    (whole,) = encoded([*events, Finish("tool_calls")], stream=False)
    custom = {"name": "patch", "input": "", "strict": True}
    called = {"id": "a", "type": "custom", "custom": custom, "extra_content": state}
    assert whole["choices"][0]["message"]["tool_calls"] == [called]
    chunks = encoded([*events, Finish("tool_calls")], stream=True)
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert calls == [{"index": 0, **called}]


def test_a_call_of_a_responses_backend_comes_back_as_one_of_the_custom_tool() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch", "input": ""}
    wire = sse(added(0, item), delta("custom_tool_call_input", 0, TEXT), done(0, {**item, "input": TEXT}), ended())
    opened = exchange(RESPONSES, stream=True)
    opened.on_response_head(200, {"content-type": "text/event-stream"})
    (whole,) = encoded([*opened.feed(wire), *opened.close()], stream=False)
    assert whole["choices"][0]["message"]["tool_calls"] == [CALL]
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
