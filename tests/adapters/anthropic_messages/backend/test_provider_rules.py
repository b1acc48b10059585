"""What each provider of the Messages API accepts: thinking without a signature, blank text, fields by model.

Source: Anthropic, "Extended thinking" ("Invalid `signature` in `thinking` block"), the errors of the API ("text content
blocks must be non-empty"); DeepSeek, Kimi and MiniMax, the guides of their Messages APIs, which check no signature.
"""

import json
from typing import Any, Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.decode import decode_document
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.profile import NEUTRAL
from gateway.providers.registry import PROFILES

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
    "llama-cpp",
    "lm-studio",
    "minimax",
    "ollama",
    "ollama-compat",
    "openrouter",
    "qwen",
    "sglang",
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


TAKES_SYSTEM: Final = ["claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1"]
TAKES_NONE: Final = [
    *("claude-sonnet-5", "claude-opus-4-7", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"),
    "claude-3-5-sonnet-latest",
]
SYSTEM: Final = {"role": "system", "content": "Be quick."}
HM: Final = {"role": "assistant", "content": "Hm."}


def chat_exchange(model: str, *messages: dict[str, Any], **fields: Any) -> Exchange:
    body = {"model": model, "messages": messages, **fields}
    return Exchange(ADAPTER, decode(json.dumps(body).encode()), Policy())


@pytest.mark.parametrize("model", TAKES_SYSTEM)
def test_a_system_message_in_mid_conversation_keeps_its_role_where_the_model_takes_it(model: str) -> None:
    """Source: Anthropic, "Mid-conversation system messages": behind a message of the user, and last or before an
    answer; two of them may not be neighbours, and one of another place is a 400."""
    more = {"role": "developer", "content": "And brief."}
    made = chat_exchange(model, HELLO, SYSTEM, more, HM, HELLO, SYSTEM)
    assert [message["role"] for message in body_of(made)["messages"]] == [
        "user",
        "system",
        "assistant",
        "user",
        "system",
    ]
    assert body_of(made)["messages"][1]["content"] == [
        {"type": "text", "text": "Be quick."},
        {"type": "text", "text": "And brief."},
    ]
    assert "SYSTEM_AS_USER" not in rules(made)
    made = chat_exchange(model, HELLO, HM, SYSTEM, HELLO)
    assert [message["role"] for message in body_of(made)["messages"]] == ["user", "assistant", "user"]
    assert "SYSTEM_AS_USER" in rules(made)


@pytest.mark.parametrize("model", [*TAKES_NONE, "m"])
def test_it_is_a_marked_reminder_for_other_models(model: str) -> None:
    made = chat_exchange(model, HELLO, SYSTEM, HM, HELLO)
    assert [message["role"] for message in body_of(made)["messages"]] == ["user", "assistant", "user"]
    assert "SYSTEM_AS_USER" in rules(made)


@pytest.mark.parametrize("model", TAKES_NONE)
def test_so_it_is_for_a_client_of_the_api_if_the_model_is_known_to_refuse_it(model: str) -> None:
    made = exchange("none", HELLO, SYSTEM, HM, HELLO, model=model)
    assert [message["role"] for message in body_of(made)["messages"]] == ["user", "assistant", "user"]
    assert rules(made) == ["SYSTEM_AS_USER"]
    unknown = exchange("none", HELLO, SYSTEM, HM, HELLO)
    assert body_of(unknown)["messages"] == [HELLO, SYSTEM, HM, HELLO]


ALWAYS_THINKS: Final = ["claude-fable-5", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5"]
NEVER_FORCED: Final = ["claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-5", "claude-sonnet-5-5-20261001"]
DEFAULT_SAMPLING: Final = ["claude-opus-4-7", "claude-opus-4-8", "claude-haiku-5-5", *ALWAYS_THINKS]
ONE_SAMPLING: Final = ["claude-sonnet-4-5", "claude-opus-4-6", "anthropic.claude-haiku-4-5-v1:0"]
TOOLS: Final = [{"name": "a", "input_schema": {"type": "object", "properties": {}}}]
FORCED: Final = [{"type": "any"}, {"type": "tool", "name": "a", "disable_parallel_tool_use": True}]


def fields_of(model: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """The fields of a request that arrive, and the rules of the notices."""
    made = exchange("none", HELLO, model=model, **fields)
    sent = body_of(made)
    return {name: sent[name] for name in fields if name in sent}, rules(made)


@pytest.mark.parametrize("model", DEFAULT_SAMPLING)
def test_sampling_is_left_out_for_models_that_take_none(model: str) -> None:
    """Source: Anthropic, migration to Claude 4.7: "any non-default value will return a 400 error"."""
    given, told = fields_of(model, temperature=0.5, top_p=0.9, top_k=5)
    assert (given, told) == ({}, ["REQUEST_FIELD_DROPPED"] * 3)
    assert fields_of(model, temperature=1) == ({"temperature": 1}, [])
    sent = body_of(chat_exchange(model, HELLO, temperature=0.5, top_p=0.9))
    assert "temperature" not in sent and "top_p" not in sent


@pytest.mark.parametrize("model", ONE_SAMPLING)
def test_only_one_of_two_kinds_of_sampling_is_sent_to_models_that_refuse_both(model: str) -> None:
    """Anthropic: "`temperature` and `top_p` cannot both be specified for this model"."""
    assert fields_of(model, temperature=0.5, top_p=0.9) == ({"temperature": 0.5}, ["REQUEST_FIELD_DROPPED"])
    assert fields_of(model, top_p=0.9, top_k=5) == ({"top_p": 0.9, "top_k": 5}, [])
    thinking = {"type": "enabled", "budget_tokens": 2000}
    assert fields_of(model, thinking=thinking, temperature=0.5) == ({"thinking": thinking}, ["FIELD_NOT_SENT"])


@pytest.mark.parametrize("model", ["m", "claude-3-5-haiku-latest", "claude-opus-4-20250514"])
def test_a_temperature_above_one_is_one(model: str) -> None:
    assert fields_of(model, temperature=1.5, top_p=0.9) == (
        {"temperature": 1, "top_p": 0.9},
        ["REQUEST_FIELD_CHANGED"],
    )
    assert body_of(chat_exchange(model, HELLO, temperature=2))["temperature"] == 1
    assert body_of(exchange("deepseek", HELLO, temperature=1.5))["temperature"] == 1.5


@pytest.mark.parametrize("model", ALWAYS_THINKS)
def test_thinking_cannot_be_switched_off_for_models_that_always_think(model: str) -> None:
    assert fields_of(model, thinking={"type": "disabled"}) == ({}, ["REQUEST_FIELD_DROPPED"])
    made = chat_exchange(model, HELLO, reasoning_effort="none")
    assert "thinking" not in body_of(made)
    assert "REQUEST_FIELD_DROPPED" in rules(made)


@pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-haiku-5-5", "claude-sonnet-4-5", "m"])
def test_it_can_be_for_others(model: str) -> None:
    assert fields_of(model, thinking={"type": "disabled"}) == ({"thinking": {"type": "disabled"}}, [])


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5", "claude-haiku-5-5", *ALWAYS_THINKS])
def test_a_budget_is_adaptive_thinking_for_models_that_take_none(model: str) -> None:
    budget = {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}
    adaptive = {"type": "adaptive", "display": "omitted"}
    assert fields_of(model, thinking=budget) == ({"thinking": adaptive}, ["REQUEST_FIELD_CHANGED"])
    assert fields_of("claude-sonnet-4-5", thinking=budget) == ({"thinking": budget}, [])


@pytest.mark.parametrize("choice", FORCED)
@pytest.mark.parametrize("model", NEVER_FORCED)
def test_a_forced_call_is_auto_for_models_that_refuse_one(model: str, choice: dict[str, Any]) -> None:
    """Source: Anthropic, migration to Fable 5.1: "a tool call with {type: "any"} or {type: "tool"} returns a 400"."""
    given, told = fields_of(model, tools=TOOLS, tool_choice=choice)
    assert given["tool_choice"] == {name: value for name, value in choice.items() if name != "name"} | {"type": "auto"}
    assert told == ["REQUEST_FIELD_CHANGED"]
    tools = [{"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": {}}}}]
    made = chat_exchange(model, HELLO, tools=tools, tool_choice="required")
    assert body_of(made)["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize("choice", FORCED)
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-haiku-5-5"])
def test_a_forced_call_goes_before_thinking(model: str, choice: dict[str, Any]) -> None:
    """Anthropic: "Thinking may not be enabled when tool_choice forces tool use"."""
    given, told = fields_of(model, tools=TOOLS, tool_choice=choice, thinking={"type": "adaptive"})
    assert (given, told) == ({"tools": TOOLS, "tool_choice": choice}, ["REQUEST_FIELD_DROPPED"])
    given, told = fields_of(model, tools=TOOLS, tool_choice=choice, thinking={"type": "disabled"})
    assert (given["thinking"], told) == ({"type": "disabled"}, [])


def test_edits_of_thinking_go_with_it() -> None:
    """Anthropic: "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive"."""
    clear, other = {"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}
    asked: dict[str, Any] = {"tools": TOOLS, "tool_choice": FORCED[0], "thinking": {"type": "adaptive"}}
    given, told = fields_of("claude-sonnet-4-5", **asked, context_management={"edits": [clear, other]})
    assert given["context_management"] == {"edits": [other]} and told == ["REQUEST_FIELD_DROPPED"] * 2
    given, _ = fields_of("claude-sonnet-4-5", **asked, context_management={"edits": [clear]})
    assert "context_management" not in given
    given, told = fields_of("claude-sonnet-4-5", thinking={"type": "adaptive"}, context_management={"edits": [clear]})
    assert (given["context_management"], told) == ({"edits": [clear]}, [])


@pytest.mark.parametrize(("top_p", "sent"), [(0.94, None), (0.95, 0.95), (1, 1)])
def test_a_high_top_p_stands_beside_thinking(top_p: float, sent: float | None) -> None:
    """Anthropic, "Extended thinking", feature compatibility: `top_p` between 0.95 and 1."""
    given, told = fields_of("claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, top_p=top_p)
    assert (given.get("top_p"), len(told)) == (sent, int(sent is None))


def test_the_base_model_decides_where_a_deployment_hides_it() -> None:
    asked = {"model": "prod-eu", "max_tokens": 9, "messages": [HELLO], "temperature": 0.5}
    conversation = decode_document(read_document(json.dumps(asked).encode()), RequestHead("/v1/messages")).conversation
    made = Exchange(ADAPTER, conversation, Policy(base_model="claude-opus-4-7"))
    assert "temperature" not in body_of(made) and rules(made) == ["REQUEST_FIELD_DROPPED"]
    assert body_of(Exchange(ADAPTER, conversation, Policy()))["temperature"] == 0.5


@pytest.mark.parametrize("model", ["claude-opus-4-8"])
def test_the_base_model_decides_the_place_of_a_system_message(model: str) -> None:
    turns = (Turn("user", (Text("hi"),)), Turn("system", (Text("Be brief."),)), Turn("user", (Text("go"),)))
    named, hidden = (
        Exchange(ADAPTER, Conversation(turns, model=name), Policy(base_model=base))
        for name, base in ((model, None), ("prod-eu", model))
    )
    assert body_of(hidden)["messages"] == body_of(named)["messages"]


def test_the_fields_of_an_unknown_model_arrive_as_they_are() -> None:
    fields = {
        "tools": TOOLS,
        "tool_choice": FORCED[0],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "temperature": 0.5,
        "top_p": 0.5,
        "top_k": 1,
    }
    assert fields_of("my-deployment", **fields) == (fields, [])
