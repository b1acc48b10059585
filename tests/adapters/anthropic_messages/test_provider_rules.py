"""What each provider of the Messages API accepts: thinking without a signature, blank text, fields by model.

Source: Anthropic, "Extended thinking" ("Invalid `signature` in `thinking` block"), the errors of the API ("text content
blocks must be non-empty"); DeepSeek, Kimi and MiniMax, the guides of their Messages APIs, which check no signature.
"""

import json
from typing import Any, Final

import pytest

from adapters.anthropic_messages import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.core.profiles import NEUTRAL, PROFILES
from gateway.dialects.anthropic_messages.decode import decode_document
from gateway.dialects.base import RequestHead
from gateway.dialects.document import read_document
from gateway.dialects.openai_chat.decode import decode
from gateway.exchange import Exchange

ADAPTER: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "a", "name": "a", "input": {}}
RESULT: Final[dict[str, Any]] = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
UNSIGNED: Final[list[dict[str, Any]]] = [
    {"type": "thinking", "thinking": "I call a", "signature": ""},
    {"type": "thinking", "thinking": "I call a", "signature": None},
    {"type": "thinking", "thinking": "I call a"},
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "redacted_thinking", "data": ""},
]
KEEPS_UNSIGNED: Final = [
    "deepseek",
    "deepseek-thinking",
    "glm",
    "kimi-thinking",
    "minimax",
    "ollama",
    "openrouter",
    "vllm",
]


def exchange(profile: str, *messages: dict[str, Any], model: str = "m", **fields: Any) -> Exchange:
    body = {"model": model, "max_tokens": 9, "messages": messages, **fields}
    conversation = decode_document(read_document(json.dumps(body).encode()), RequestHead("/v1/messages")).conversation
    return Exchange(ADAPTER, conversation, Policy(profile=PROFILES[profile]))


def body_of(made: Exchange) -> Any:
    return json.loads(made.request.body)


def rules(made: Exchange) -> list[str]:
    return [notice.rule for notice in made.notices if notice.rule != "TOOL_RESULT_EXTRACTED"]


@pytest.mark.parametrize("block", UNSIGNED)
@pytest.mark.parametrize("profile", ["none", "anthropic"])
def test_thinking_without_a_signature_never_reaches_anthropic(profile: str, block: dict[str, Any]) -> None:
    made = exchange(profile, HELLO, {"role": "assistant", "content": [block, CALL]}, RESULT)
    assert body_of(made)["messages"][1]["content"] == [CALL]
    assert rules(made) == ["REASONING_NOT_SENT"]


def test_a_message_of_nothing_else_is_left_out() -> None:
    made = exchange("none", HELLO, {"role": "assistant", "content": [UNSIGNED[0]]}, HELLO)
    assert body_of(made)["messages"] == [HELLO, HELLO]
    assert rules(made) == ["REASONING_NOT_SENT", "EMPTY_TURN_NOT_SENT"]


def test_signed_thinking_stays_beside_it() -> None:
    signed = {"type": "thinking", "thinking": "", "signature": "S", "x": 1}
    made = exchange("none", HELLO, {"role": "assistant", "content": [UNSIGNED[0], signed, CALL]}, RESULT)
    assert body_of(made)["messages"][1]["content"] == [signed, CALL]


@pytest.mark.parametrize("block", UNSIGNED)
@pytest.mark.parametrize("profile", KEEPS_UNSIGNED)
def test_other_providers_keep_it_as_it_came(profile: str, block: dict[str, Any]) -> None:
    said = {"role": "assistant", "content": [block, CALL]}
    made = exchange(profile, HELLO, said, RESULT)
    assert body_of(made)["messages"] == [HELLO, said, RESULT]
    assert rules(made) == []


@pytest.mark.parametrize("profile", KEEPS_UNSIGNED)
def test_the_reasoning_of_a_chat_client_is_thinking_there(profile: str) -> None:
    messages = [
        HELLO,
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I call a",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "a", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "7"},
    ]
    conversation = decode(json.dumps({"model": "m", "messages": messages}).encode())
    sent = body_of(Exchange(ADAPTER, conversation, Policy(profile=PROFILES[profile])))
    assert sent["messages"][1]["content"][0] == {"type": "thinking", "thinking": "I call a", "signature": ""}
    neutral = body_of(Exchange(ADAPTER, conversation, Policy(profile=NEUTRAL)))
    assert neutral["messages"][1]["content"] == [CALL]


@pytest.mark.parametrize("text", ["", " \n"])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_blank_text_is_left_out(role: str, text: str) -> None:
    blank, more = {"type": "text", "text": text}, {"type": "text", "text": "b"}
    made = exchange("none", HELLO, {"role": role, "content": [blank, more]}, HELLO)
    assert body_of(made)["messages"][1] == {"role": role, "content": [more]}
    assert rules(made) == ["BLANK_TEXT_NOT_SENT"]
    made = exchange("none", HELLO, {"role": role, "content": text}, HELLO)
    assert body_of(made)["messages"] == [HELLO, HELLO]
    assert "EMPTY_TURN_NOT_SENT" in rules(made)


def test_blank_text_of_the_system_prompt_is_left_out() -> None:
    said = [{"type": "text", "text": ""}, {"type": "text", "text": "Be brief."}]
    made = exchange("none", HELLO, system=said)
    assert body_of(made)["system"] == said[1:]
    assert rules(made) == ["BLANK_TEXT_NOT_SENT"]


def test_a_request_of_blank_text_alone_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        exchange("none", {"role": "user", "content": [{"type": "text", "text": " "}]})


def test_blank_text_stays_where_a_provider_takes_it() -> None:
    said = {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "b"}]}
    assert body_of(exchange("glm", said))["messages"] == [said]
