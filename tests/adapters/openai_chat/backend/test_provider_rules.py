"""What each provider receives of ranges, stop sequences, thinking and forced calls, in its own words and told.

The tables are the providers' documentation, error texts, SDKs and servers: "Thinking mode does not support this
tool_choice" (DeepSeek), "invalid temperature: only 1 is allowed for this model" (Kimi), the range in GLM's error for a
limit above it, "parameter.enable_thinking must be set to false for non-streaming calls" (Qwen's open models), "Invalid
tool_choice type: 'object'. Supported string values: none, auto, required" (LM Studio).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode_document as decode_chat
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import InvalidRequest
from gateway.core.events import Event, Finish, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.providers.request_rules import EFFORTS, RequestRules, ThinkingRules
from gateway.testing.profile_checks import Sent, broken_demands
from tests.tiers import sample

ADAPTER: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
HELLO: Final[Json] = [{"role": "user", "content": "hi"}]
SCHEMA: Final = {"type": "object", "properties": {}}
TOOLS: Final = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("f", "g")]
NAMED: Final = {"type": "function", "function": {"name": "g"}}
ALLOWED: Final = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}


def exchange(conversation: Conversation, profile: str, base_model: str | None = None) -> Exchange:
    return Exchange(ADAPTER, conversation, Policy(profile=PROFILES[profile], base_model=base_model))


def chat(profile: str, model: str, fields: Mapping[str, Any]) -> Exchange:
    return exchange(decode_chat(Document({"messages": HELLO, "model": model, **fields})), profile)


def messages(profile: str, model: str, fields: Mapping[str, Any]) -> Exchange:
    document = Document({"messages": HELLO, "model": model, "max_tokens": 50, **fields})
    return exchange(decode_messages(document, RequestHead("")).conversation, profile)


def sent_fields(sent: Exchange) -> dict[str, Any]:
    body = json.loads(sent.request.body)
    return {name: value for name, value in body.items() if name not in ("messages", "model", "tools", "stream")}


def rules_told(sent: Exchange) -> set[str]:
    return {notice.rule for notice in sent.notices}


# The profile, the model, the fields of the client, those that are sent, and the rules of the notices.
CHANGED: Final = "REQUEST_FIELD_CHANGED"
DROPPED: Final = "REQUEST_FIELD_DROPPED"
RENAMED: Final = "REQUEST_FIELD_RENAMED"
EFFORT: Final = "EFFORT_CHANGED"
Row = tuple[str, str, dict[str, Any], dict[str, Any], set[str]]

RANGES: Final[list[Row]] = [
    ("glm", "glm-5", {"temperature": 1.5}, {"temperature": 1}, {CHANGED}),
    ("glm", "glm-5", {"temperature": 1}, {"temperature": 1}, set()),
    ("glm", "glm-5", {"top_p": 0}, {"top_p": 0.01}, {CHANGED}),
    ("glm", "glm-4.5-air", {"max_tokens": 200_000}, {"max_tokens": 98_304}, {CHANGED}),
    ("glm", "glm-4.6", {"max_completion_tokens": 200_000}, {"max_tokens": 131_072}, {CHANGED, RENAMED}),
    ("mistral", "m", {"temperature": 2}, {"temperature": 1.5}, {CHANGED}),
    ("minimax", "MiniMax-M2", {"temperature": 1.2}, {"temperature": 1}, {CHANGED}),
    ("qwen", "qwen3.8-max", {"temperature": 2}, {"temperature": 1.99}, {CHANGED}),
    ("kimi-thinking", "moonshot-v1-8k", {"temperature": 1.5}, {"temperature": 1}, {CHANGED}),
    ("anthropic-compat", "claude-sonnet-4", {"temperature": 1.5}, {"temperature": 1}, {CHANGED}),
    ("anthropic-compat", "claude-sonnet-4-5", {"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5}, {DROPPED}),
    ("anthropic-compat", "claude-opus-4-7", {"temperature": 0.5, "top_p": 0.5, "top_k": 3}, {}, {DROPPED}),
    ("snowflake", "m", {"max_tokens": 200_000}, {"max_completion_tokens": 131_072}, {CHANGED, RENAMED}),
    ("openai", "gpt-5", {"max_tokens": 200_000}, {"max_completion_tokens": 128_000}, {CHANGED, RENAMED}),
    ("openai", "gpt-4o", {"max_tokens": -1}, {}, {DROPPED, RENAMED}),
    ("mistral", "m", {"max_tokens": 0}, {}, {DROPPED}),
    ("vllm", "m", {"max_completion_tokens": -1}, {}, {DROPPED}),
    # Here -1 is no limit, and 0 evaluates the prompt only.
    ("llama-cpp", "m", {"max_tokens": -1}, {"max_tokens": -1}, set()),
    ("llama-cpp", "m", {"max_tokens": 0}, {"max_tokens": 0}, set()),
    ("none", "m", {"max_tokens": -1, "temperature": 9}, {"max_tokens": -1, "temperature": 9}, set()),
]
THINKING: Final[list[Row]] = [
    ("deepseek-thinking", "deepseek-v4", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, {RENAMED}),
    (
        "deepseek",
        "deepseek-v4",
        {"reasoning_effort": "xhigh"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        {EFFORT, CHANGED},
    ),
    ("glm", "glm-5.1", {"reasoning_effort": "high"}, {"thinking": {"type": "enabled"}}, {RENAMED}),
    ("glm", "glm-4.5", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, {RENAMED}),
    (
        "glm",
        "glm-5.2",
        {"reasoning_effort": "minimal", "thinking": {"type": "enabled", "clear_thinking": False}},
        {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "minimal"},
        set(),
    ),
    ("glm", "glm-5.3", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {EFFORT}),
    ("glm", "glm-5.3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "low"}, {EFFORT}),
    ("kimi-thinking", "kimi-k3", {"reasoning_effort": "medium"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("kimi-thinking", "kimi-k3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "low"}, {EFFORT}),
    ("kimi-thinking", "kimi-k2.5", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, {RENAMED}),
    ("kimi-thinking", "kimi-k2.7-code", {"reasoning_effort": "none"}, {}, {DROPPED}),
    (
        "qwen",
        "qwen3.8-max",
        {"reasoning_effort": "high"},
        {"enable_thinking": True, "reasoning_effort": "medium"},
        {EFFORT, CHANGED},
    ),
    ("qwen", "qwen3.6-plus", {"reasoning_effort": "none"}, {"enable_thinking": False}, {RENAMED}),
    ("qwen", "qwen3.6-plus", {"thinking": {"type": "disabled"}}, {"enable_thinking": False}, {RENAMED}),
    ("qwen", "qwen3-32b", {}, {"enable_thinking": False}, {CHANGED}),
    ("qwen", "qwen3-32b", {"reasoning_effort": "high"}, {"enable_thinking": False}, {CHANGED}),
    ("qwen", "qwen3-32b", {"reasoning_effort": "high", "stream": True}, {"enable_thinking": True}, {RENAMED}),
    ("qwen", "qwen3-32b", {"stream": True}, {}, set()),
    ("qwen", "qwen3-235b-a22b-thinking-2507", {}, {}, set()),
    ("qwen", "qwen3-coder-30b-a3b-instruct", {}, {}, set()),
    ("gemini", "gemini-2.5-flash", {"reasoning_effort": "max"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("gemini", "gemini-2.5-flash", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {RENAMED}),
    ("gemini", "gemini-3-flash", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {EFFORT}),
    (
        "qwen",
        "glm-5.2",
        {"reasoning_effort": "low"},
        {"enable_thinking": True, "reasoning_effort": "high"},
        {EFFORT, CHANGED},
    ),
    ("minimax", "MiniMax-M3", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "adaptive"}}, {CHANGED}),
    ("minimax", "MiniMax-M3", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, {RENAMED}),
    (
        "vllm",
        "qwen3",
        {"reasoning_effort": "none"},
        {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        {CHANGED},
    ),
    (
        "vllm",
        "qwen3",
        {"thinking": {"type": "disabled"}, "chat_template_kwargs": {"a": 1}},
        {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False, "thinking": False, "a": 1}},
        {RENAMED},
    ),
    ("vllm", "mistral-small", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}, set()),
    ("sglang", "qwen3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {RENAMED}),
    ("sglang", "gpt-oss-20b", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {EFFORT}),
    (
        "llama-cpp",
        "qwen3",
        {"thinking": {"type": "disabled"}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {RENAMED},
    ),
    ("groq", "openai/gpt-oss-120b", {"reasoning_effort": "max"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("groq", "openai/gpt-oss-120b", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {EFFORT}),
    ("groq", "qwen/qwen3-32b", {"reasoning_effort": "high"}, {"reasoning_effort": "default"}, {EFFORT}),
    ("groq", "qwen/qwen3-32b", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {RENAMED}),
    ("cerebras", "glm-4.7", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("cerebras", "glm-4.7", {"thinking": {"type": "enabled"}}, {}, {DROPPED}),
    ("xai", "grok-4.3", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}, {EFFORT}),
    ("xai", "grok-4.6-fast", {"reasoning_effort": "max"}, {"reasoning_effort": "xhigh"}, {EFFORT}),
    ("xai", "grok-4-fast", {"reasoning_effort": "high"}, {}, {DROPPED}),
    ("xai", "grok-4.20", {"reasoning_effort": "high"}, {}, {DROPPED}),
    ("xai", "grok-4.20-multi-agent", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "xhigh"}, set()),
    ("ollama-compat", "qwen3", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}, {EFFORT}),
    ("ollama-compat", "qwen3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {RENAMED}),
    ("fireworks", "m", {"reasoning_effort": "max"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("fireworks", "gpt-oss-20b", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {EFFORT}),
    ("openai", "gpt-5", {"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}, {EFFORT}),
    ("openai", "gpt-5.2", {"reasoning_effort": "max"}, {"reasoning_effort": "xhigh"}, {EFFORT}),
    ("openai", "o3", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}, {EFFORT}),
    ("openai", "gpt-5.2", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {RENAMED}),
    ("openai", "gpt-4.1", {"thinking": {"type": "disabled"}}, {}, {DROPPED}),
    ("openai", "gpt-4.1", {"reasoning_effort": "high"}, {}, {DROPPED}),
    ("azure", "gpt-5", {"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}, {EFFORT}),
    # What is said of no model, and words that are nobody's, pass.
    (
        "none",
        "m",
        {"reasoning_effort": "max", "thinking": {"type": "x"}},
        {"reasoning_effort": "max", "thinking": {"type": "x"}},
        set(),
    ),
    (
        "vllm",
        "qwen3",
        {"reasoning_effort": "ultra"},
        {"reasoning_effort": "ultra", "chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        {CHANGED},
    ),
    ("openai", "gpt-oss", {"reasoning_effort": "max"}, {"reasoning_effort": "max"}, set()),
]
SWITCHED_OFF: Final[list[Row]] = [
    (
        profile,
        model,
        {"tools": TOOLS, "tool_choice": choice},
        {"tool_choice": choice, **switch},
        {CHANGED},
    )
    for profile, model, switch in (
        ("deepseek-thinking", "deepseek-v4", {"thinking": {"type": "disabled"}}),
        ("kimi-thinking", "kimi-k2.6", {"thinking": {"type": "disabled"}}),
        ("qwen", "qwen3.6-plus", {"enable_thinking": False}),
    )
    for choice in ("required", NAMED)
]
CHOICES: Final[list[Row]] = [
    *SWITCHED_OFF,
    ("glm", "glm-5", {"tools": TOOLS, "tool_choice": "required"}, {"tool_choice": "auto"}, {CHANGED}),
    ("glm", "glm-5", {"tools": TOOLS, "tool_choice": "none"}, {}, {DROPPED}),
    ("glm", "glm-5", {"tools": TOOLS, "tool_choice": "auto"}, {"tool_choice": "auto"}, set()),
    (
        "kimi-thinking",
        "kimi-k2.7-code",
        {"tools": TOOLS, "tool_choice": "required"},
        {"tool_choice": "auto"},
        {CHANGED},
    ),
    ("kimi-thinking", "kimi-k3", {"tools": TOOLS, "tool_choice": "required"}, {"tool_choice": "required"}, set()),
    ("kimi-thinking", "kimi-k3", {"tools": TOOLS, "tool_choice": NAMED}, {"tool_choice": "required"}, {CHANGED}),
    ("lm-studio", "m", {"tools": TOOLS, "tool_choice": NAMED}, {"tool_choice": "required"}, {CHANGED}),
    ("llama-cpp", "m", {"tools": TOOLS, "tool_choice": NAMED}, {"tool_choice": "required"}, {CHANGED}),
    ("ollama-compat", "m", {"tools": TOOLS, "tool_choice": "none"}, {}, {DROPPED}),
    ("ollama-compat", "m", {"tools": TOOLS, "tool_choice": "required"}, {"tool_choice": "auto"}, {CHANGED}),
    ("lm-studio", "m", {"tools": TOOLS, "tool_choice": ALLOWED}, {"tool_choice": "required"}, {CHANGED}),
    ("openai", "gpt-4o", {"tools": TOOLS, "tool_choice": ALLOWED}, {"tool_choice": ALLOWED}, set()),
    # Nothing is to be done where the model does not think.
    (
        "deepseek",
        "deepseek-v4",
        {"tools": TOOLS, "tool_choice": "required", "thinking": {"type": "disabled"}},
        {"tool_choice": "required", "thinking": {"type": "disabled"}},
        set(),
    ),
    ("openai", "gpt-4o", {"tools": TOOLS, "tool_choice": NAMED}, {"tool_choice": NAMED}, set()),
]


def _id(row: object) -> str | None:
    return row if isinstance(row, str) else None


@sample()
@pytest.mark.parametrize(("profile", "model", "fields", "expected", "told"), RANGES, ids=_id)
def test_a_number_is_sent_within_the_range_of_its_provider(
    profile: str, model: str, fields: dict[str, Any], expected: dict[str, Any], told: set[str]
) -> None:
    sent = chat(profile, model, fields)
    assert (sent_fields(sent), rules_told(sent)) == (expected, told)


@sample()
@pytest.mark.parametrize(("profile", "model", "fields", "expected", "told"), THINKING, ids=_id)
def test_thinking_is_switched_in_the_words_of_the_provider(
    profile: str, model: str, fields: dict[str, Any], expected: dict[str, Any], told: set[str]
) -> None:
    sent = chat(profile, model, fields)
    assert (sent_fields(sent), rules_told(sent)) == (expected, told)


@sample()
@pytest.mark.parametrize(("profile", "model", "fields", "expected", "told"), CHOICES, ids=_id)
def test_a_forced_call_is_asked_for_as_the_provider_accepts_it(
    profile: str, model: str, fields: dict[str, Any], expected: dict[str, Any], told: set[str]
) -> None:
    sent = chat(profile, model, fields)
    assert (sent_fields(sent), rules_told(sent)) == (expected, told)


@pytest.mark.parametrize("choice", [NAMED, ALLOWED])
def test_a_choice_of_one_that_becomes_required_leaves_one_function(choice: Json) -> None:
    body = json.loads(chat("lm-studio", "m", {"tools": TOOLS, "tool_choice": choice}).request.body)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["g"]


def test_without_a_choice_of_none_no_functions_are_sent() -> None:
    body = json.loads(chat("glm", "glm-5", {"tools": TOOLS, "tool_choice": "none"}).request.body)
    assert "tools" not in body


@pytest.mark.parametrize(
    ("profile", "model", "fields", "expected"),
    [
        ("deepseek-thinking", "deepseek-v4", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("deepseek-thinking", "deepseek-v4", {"thinking": {"type": "adaptive"}}, {"thinking": {"type": "enabled"}}),
        ("kimi-thinking", "kimi-k2.6", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("glm", "glm-5", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("qwen", "qwen3.6-plus", {"thinking": {"type": "disabled"}}, {"enable_thinking": False}),
        (
            "vllm",
            "m",
            {"thinking": {"type": "disabled"}},
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
        ("sglang", "m", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}),
        (
            "sglang",
            "m",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            {"reasoning_effort": "max"},
        ),
        (
            "deepseek-thinking",
            "deepseek-v4",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ),
    ],
)
def test_a_client_of_messages_switches_thinking(
    profile: str, model: str, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = sent_fields(messages(profile, model, fields))
    assert {name: value for name, value in found.items() if "max_" not in name} == expected


def test_a_switch_that_a_backend_lacks_is_told() -> None:
    sent = messages("none", "m", {"thinking": {"type": "disabled"}})
    assert sent_fields(sent) == {"max_tokens": 50}
    assert rules_told(sent) == {"FIELD_NOT_SENT"}


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("kind", ["enabled", "adaptive", "disabled"])
def test_no_profile_loses_the_thinking_of_a_client_of_messages_untold(profile: str, kind: str) -> None:
    sent = messages(profile, "m", {"thinking": {"type": kind}})
    found = {name for name in sent_fields(sent) if "max_" not in name}
    assert found or rules_told(sent)


@pytest.mark.parametrize("off", [{"thinking": {"enabled": False}}, {"thinking": False}])
def test_a_switch_of_any_form_may_be_declared(off: dict[str, Any]) -> None:
    rules = RequestRules(thinking=ThinkingRules(off=off))
    asked = Document({"messages": HELLO, "model": "m", "max_tokens": 50, "thinking": {"type": "disabled"}})
    conversation = decode_messages(asked, RequestHead("")).conversation
    made = Exchange(ADAPTER, conversation, Policy(profile=Profile(request_rules=rules)))
    assert json.loads(made.request.body)["thinking"] == off["thinking"] and rules_told(made)


def _custom(name: str) -> dict[str, Json]:
    return {"type": "custom", "custom": {"name": name}}


@pytest.mark.parametrize(
    ("tools", "choice", "expected"),
    [
        (None, NAMED, {"tool_choice": "required"}),
        (
            [_custom("a"), _custom("b"), *TOOLS[:1]],
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [_custom("a")]}},
            {"tools": [_custom("a")], "tool_choice": "required"},
        ),
        (
            TOOLS,
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function"}]}},
            {},
        ),
    ],
)
def test_a_choice_leaves_no_other_tools_and_invents_none(
    tools: list[Json] | None, choice: Json, expected: dict[str, Json]
) -> None:
    fields = {"tool_choice": choice} if tools is None else {"tools": tools, "tool_choice": choice}
    body = json.loads(chat("lm-studio", "m", fields).request.body)
    assert {name: value for name, value in body.items() if name in ("tools", "tool_choice")} == expected


@pytest.mark.parametrize("model", ["gpt-4o", "chatgpt-4o-latest", "gpt-3.5-turbo", "gpt-35-turbo"])
def test_models_that_do_not_reason_get_no_effort(model: str) -> None:
    sent = chat("openai", model, {"reasoning_effort": "low"})
    assert "reasoning_effort" not in sent_fields(sent) and rules_told(sent) == {"REQUEST_FIELD_DROPPED"}


def test_the_clients_own_switch_of_the_provider_comes_first() -> None:
    own = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
    assert sent_fields(chat("vllm", "m", {"reasoning_effort": "none", **own})) == {"reasoning_effort": "none", **own}


STOPS: Final = ["a", "b", "c", "d", "e", "f"]


@sample()
@pytest.mark.parametrize(
    ("profile", "model", "asked", "sent"),
    [
        ("openai", "gpt-4o", STOPS, STOPS[:4]),
        ("openai", "gpt-5", STOPS, None),
        ("openai", "o3-mini", ["a"], ["a"]),
        ("openai", "o3", ["a"], None),
        ("azure", "gpt-4o", STOPS, STOPS[:4]),
        ("groq", "m", STOPS, STOPS[:4]),
        ("cerebras", "m", STOPS, STOPS[:4]),
        ("openrouter", "m", STOPS, STOPS[:4]),
        ("fireworks", "m", STOPS, STOPS[:4]),
        ("gemini", "m", STOPS, STOPS[:5]),
        ("kimi-thinking", "kimi-k3", [*STOPS[:2], "x" * 33], ["a", "b"]),
        ("anthropic-compat", "m", ["\n", "a"], ["a"]),
        ("xai", "grok-4.3", ["a"], None),
        ("xai", "grok-4-fast-non-reasoning", ["a"], ["a"]),
        ("bedrock", "xai.grok-4", ["a"], None),
        ("llama-cpp", "m", STOPS, STOPS),
        ("vllm", "m", STOPS, STOPS),
        ("none", "m", STOPS, STOPS),
        ("openai", "gpt-4o", "a", "a"),
    ],
)
def test_stop_sequences_that_are_not_sent_end_the_answer(
    profile: str, model: str, asked: list[str] | str, sent: list[str] | str | None
) -> None:
    found = chat(profile, model, {"stop": asked})
    assert sent_fields(found).get("stop") == sent
    for sequence in [one for one in asked if one not in (sent or ())]:
        one = chat(profile, model, {"stop": asked})
        one.on_response_head(200, {"content-type": "application/json"})
        choice = {"index": 0, "message": {"role": "assistant", "content": f"Q{sequence}R"}, "finish_reason": "stop"}
        one.feed(json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode())
        text = "".join(str(getattr(event, "text", "")) for event in one.close())
        assert text == "Q"


def chunk(delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


def streamed(sent: Exchange, chunks: Sequence[bytes]) -> list[Event]:
    sent.on_response_head(200, {"content-type": "text/event-stream"})
    events: list[Event] = []
    for piece in chunks:
        if sent.done:
            break
        events += sent.feed(piece)
    return events if sent.done else [*events, *sent.close()]


def test_a_stream_ends_before_a_sequence_that_was_not_sent() -> None:
    sent = chat("openai", "gpt-5", {"stop": ["STOP"], "stream": True})
    events = streamed(sent, [chunk({"content": text}) for text in ("one ", "ST", "OP two", " three")])
    assert "".join(str(getattr(event, "text", "")) for event in events) == "one "
    assert [event.reason for event in events if isinstance(event, Finish)] == ["stop"]


def test_a_stream_keeps_one_call_where_the_provider_cannot_be_asked_for_one() -> None:
    sent = chat("together", "m", {"tools": TOOLS, "parallel_tool_calls": False, "stream": True})
    calls = [
        chunk({"tool_calls": [{"index": at, "id": f"k{at}", "function": {"name": "f", "arguments": "{}"}}]})
        for at in range(2)
    ]
    events = streamed(sent, [*calls, chunk({}, "tool_calls"), b"data: [DONE]\n\n"])
    assert [event.id for event in events if isinstance(event, ToolCallStart)] == ["k0"]
    assert "SECOND_CALL_DROPPED" in [event.rule for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize(
    ("profile", "model"), [("together", "m"), ("ollama-compat", "m"), ("cerebras", "gpt-oss-120b")]
)
def test_one_call_is_kept_where_the_provider_cannot_be_asked_for_one(profile: str, model: str) -> None:
    sent = chat(profile, model, {"tools": TOOLS, "parallel_tool_calls": False})
    assert (sent_fields(sent), DROPPED in rules_told(sent)) == ({}, True)
    sent.on_response_head(200, {"content-type": "application/json"})
    calls = [{"id": f"k{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(2)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    sent.feed(json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode())
    events = sent.close()
    assert len([event for event in events if isinstance(event, ToolCallStart)]) == 1


@pytest.mark.parametrize(
    ("profile", "model", "fields"),
    [
        ("groq", "m", {"logprobs": True}),
        ("groq", "m", {"top_logprobs": 2, "logprobs": True}),
        ("groq", "m", {"logit_bias": {"7": 1}}),
        ("openai", "o3", {"logprobs": True}),
        ("openai", "gpt-5", {"logit_bias": {"7": 1}}),
    ],
)
def test_a_field_that_an_answer_needs_is_refused_with_its_name(
    profile: str, model: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        chat(profile, model, fields)
    assert raised.value.param in fields


def test_a_field_that_asks_for_nothing_is_left_out() -> None:
    sent = chat("groq", "m", {"logprobs": False, "logit_bias": {}})
    assert (sent_fields(sent), rules_told(sent)) == ({}, {DROPPED})


@pytest.mark.parametrize("profile", ["openai", "azure"])
def test_the_base_model_decides_where_a_deployment_hides_it(profile: str) -> None:
    asked = decode_chat(Document({"messages": HELLO, "model": "my-deployment", "temperature": 0.5}))
    assert sent_fields(exchange(asked, profile)) == {"temperature": 0.5}
    sent = exchange(asked, profile, "gpt-5")
    assert (sent_fields(sent), json.loads(sent.request.body)["model"]) == ({}, "my-deployment")


MODELS: Final = [
    "m",
    "gpt-4o",
    "gpt-4o-chat-latest",
    *("gpt-5", "gpt-5.1", "gpt-5.1-codex", "gpt-5.2", "gpt-5.4", "gpt-5.4-pro", "gpt-5.6", "gpt-6", "gpt-6.1-sol"),
    *("o3", "o3-mini", "openai.gpt-5.6", "openai.gpt-oss-120b", "openai/gpt-oss-20b"),
    *("claude-sonnet-4-5", "claude-opus-4-7", "claude-fable-5-1"),
    *("deepseek-v4", "kimi-k2.5", "kimi-k2.7-code", "kimi-k2-thinking", "kimi-k3", "moonshot-v1-8k"),
    *("glm-4.5", "glm-4.6", "glm-5", "glm-5.2", "glm-5.3", "MiniMax-M2", "MiniMax-M3"),
    *("qwen/qwen3-32b", "qwen3-8b", "qwen3.6-plus", "qwen3.8-max", "mistral-small"),
    *("grok-3", "grok-4.20-multi-agent", "grok-4.3", "grok-4-fast-non-reasoning", "xai.grok-4"),
]
TYPES: Final = st.sampled_from(["enabled", "disabled", "adaptive"])
FIELDS: Final = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0, 0.5, 1, 1.7, 2]),
        "top_p": st.sampled_from([0, 0.5, 1]),
        "presence_penalty": st.sampled_from([0, 1]),
        "max_tokens": st.sampled_from([-1, 0, 1, 50, 99_999, 999_999]),
        "max_completion_tokens": st.sampled_from([-1, 0, 50, 999_999]),
        "stop": st.lists(st.sampled_from([" ", "a", "b", "c", "d", "e", "f", "x" * 40]), max_size=7) | st.just("a"),
        "reasoning_effort": st.sampled_from(EFFORTS),
        "thinking": st.builds(lambda kind: {"type": kind}, TYPES),
        "enable_thinking": st.booleans(),
        "chat_template_kwargs": st.just({"enable_thinking": True}),
        "tools": st.just(TOOLS),
        "tool_choice": st.sampled_from(["auto", "none", "required", NAMED, ALLOWED]),
        "parallel_tool_calls": st.booleans(),
        "stream": st.booleans(),
        "logprobs": st.just(False),
    },
)


@given(st.sampled_from([*PROFILES]), st.sampled_from(MODELS), FIELDS)
def test_whatever_a_client_asks_for_the_provider_accepts_what_is_sent(
    profile: str, model: str, fields: dict[str, Any]
) -> None:
    rules = PROFILES[profile].request_rules
    own = {"enable_thinking", "chat_template_kwargs"} & fields.keys()
    sent = chat(profile, model, fields)
    body = json.loads(sent.request.body)
    broken = broken_demands(Sent({"model": model, "messages": HELLO, **fields}, body), PROFILES[profile])
    assert own or broken == []
    changed = {name for name, value in fields.items() if body.get(name) != value and name not in ("stop", "tools")}
    assert not changed or rules_told(sent)
    assert rules is not None or not changed


@given(st.sampled_from([*PROFILES]), st.sampled_from(MODELS), FIELDS)
@example("qwen", "m", {"reasoning_effort": "none", "enable_thinking": True, "tools": TOOLS, "tool_choice": "required"})
def test_what_is_fitted_once_stays_as_it_is(profile: str, model: str, fields: dict[str, Any]) -> None:
    body = json.loads(chat(profile, model, fields).request.body)
    again = {name: value for name, value in body.items() if name not in ("messages", "model")}
    assert json.loads(chat(profile, model, again).request.body) == body
