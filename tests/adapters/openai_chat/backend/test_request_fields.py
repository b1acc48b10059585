"""What a provider receives beside the messages, from clients of each dialect: its own names, and no field it refuses.

The table is the providers' documentation, error texts and SDKs: `max_tokens` is a 400 at OpenAI's reasoning models and
`max_completion_tokens` a 422 at Mistral; the SDKs of Groq and Cerebras, and Google's compatible API, lack the fields of
OpenAI's bookkeeping.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.gemini.client.decode import decode_document as decode_gemini
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode_document as decode_chat
from adapters.openai_responses.client.decode import decode_document as decode_responses
from gateway.core.conversation import Conversation
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.providers.request_rules import RequestRules
from tests.tiers import sample

ADAPTER: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
HELLO: Final = [{"role": "user", "content": "hi"}]
OF_OPENAI: Final = {
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "safety_identifier": "s",
    "service_tier": "default",
    "verbosity": "low",
}
RESPONSES: Final = {name: value for name, value in OF_OPENAI.items() if name != "verbosity"}
# What each client sends, and the canonical names of the fields that an API without rules receives of it.
CLIENTS: Final[Mapping[str, tuple[Callable[[Document], Conversation], dict[str, Any], dict[str, Any]]]] = {
    "chat": (
        decode_chat,
        {"messages": HELLO, "max_tokens": 50, "seed": 7, "store": False, **OF_OPENAI},
        {"max_tokens": 50, "seed": 7, "store": False, **OF_OPENAI},
    ),
    "chat, newer limit": (
        decode_chat,
        {"messages": HELLO, "max_completion_tokens": 50},
        {"max_completion_tokens": 50},
    ),
    "responses": (
        lambda document: decode_responses(document).conversation,
        {"input": "hi", "max_output_tokens": 50, "text": {"verbosity": "low"}, **RESPONSES},
        {"max_tokens": 50, **OF_OPENAI},
    ),
    "messages": (
        lambda document: decode_messages(document, RequestHead("")).conversation,
        {"messages": HELLO, "max_tokens": 50},
        {"max_tokens": 50},
    ),
    "gemini": (
        lambda document: decode_gemini(document, RequestHead("")).conversation,
        {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": 50, "seed": 7}},
        {"max_tokens": 50, "seed": 7},
    ),
}
# Of each provider: the other names that it has, and the fields that it does not accept.
_OLDER: Final = {"max_completion_tokens": "max_tokens"}
_NEWER: Final = {"max_tokens": "max_completion_tokens"}
PROVIDERS: Final[Mapping[str, tuple[dict[str, str], set[str]]]] = {
    "none": ({}, set()),
    "openai": (_NEWER, {"metadata"}),
    "bedrock": (_NEWER, set()),
    "deepseek": (_OLDER, set()),
    "deepseek-thinking": (_OLDER, set()),
    "glm": (_OLDER, set()),
    "ollama": (_OLDER, set()),
    "mistral": ({**_OLDER, "seed": "random_seed"}, {"store", "service_tier", "verbosity", "safety_identifier"}),
    "groq": (
        {},
        {"metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store", "verbosity"},
    ),
    "cerebras": ({}, {"metadata", "safety_identifier", "store", "verbosity"}),
    "gemini": ({}, {"metadata", "prompt_cache_key", "safety_identifier", "store", "verbosity"}),
    "kimi-thinking": ({}, set()),
    "minimax": ({}, set()),
    "openrouter": ({}, set()),
    "anthropic": ({}, set()),
    "anthropic-compat": ({}, set()),
    "azure": (_NEWER, {"metadata"}),
    "fireworks": (_OLDER, set()),
    "llama-cpp": ({}, set()),
    "lm-studio": (_OLDER, set()),
    "ollama-compat": (_OLDER, set()),
    "qwen": ({}, set()),
    "sglang": ({}, set()),
    "snowflake": (_NEWER, set()),
    "together": (_OLDER, set()),
    "xai": ({}, set()),
    "vllm": ({}, set()),
}


def exchange(read: Callable[[Document], Conversation], fields: Mapping[str, Any], profile: Profile) -> Exchange:
    return Exchange(ADAPTER, read(Document({"model": "m", **fields})), Policy(profile=profile))


def beside_messages(sent: Exchange) -> dict[str, Any]:
    body = json.loads(sent.request.body)
    assert body.pop("messages")
    assert body.pop("model") == "m"
    return dict(body)


def told(sent: Exchange) -> list[tuple[str, str]]:
    """The rules of the notices about fields, and the fields as their client knows them."""
    rules = [(notice.rule, notice.detail.split(" ", 1)[0]) for notice in sent.notices]
    return [entry for entry in rules if entry[0].startswith("REQUEST_FIELD")]


def test_the_table_has_each_provider() -> None:
    assert PROVIDERS.keys() == PROFILES.keys()


@sample()
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_receives_its_own_fields(client: str, provider: str) -> None:
    read, fields, canonical = CLIENTS[client]
    names, refused = PROVIDERS[provider]
    sent = exchange(read, fields, PROFILES[provider])
    expected = {names.get(name, name): value for name, value in canonical.items() if name not in refused}
    assert beside_messages(sent) == expected
    assert len(told(sent)) == len((names.keys() | refused) & canonical.keys())


def chat(fields: Mapping[str, Any], profile: str | RequestRules) -> Exchange:
    rules = PROFILES[profile] if isinstance(profile, str) else Profile(request_rules=profile)
    return exchange(decode_chat, {"messages": HELLO, **fields}, rules)


@pytest.mark.parametrize(
    ("provider", "fields", "expected"),
    [
        ("openai", {"max_tokens": 5, "max_completion_tokens": 9}, {"max_completion_tokens": 9}),
        ("mistral", {"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 9}),
        ("openai", {"max_tokens": None}, {}),
        ("mistral", {"max_completion_tokens": None}, {}),
    ],
)
def test_the_newer_limit_comes_first(provider: str, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    sent = chat(fields, provider)
    assert beside_messages(sent) == expected
    assert [rule for rule, _ in told(sent)] == [f"REQUEST_FIELD_{'RENAMED' if expected else 'DROPPED'}"]


def test_a_notice_names_the_field_as_the_client_knows_it() -> None:
    read, fields, _ = CLIENTS["responses"]
    sent = exchange(read, fields, PROFILES["mistral"])
    dropped = [field for rule, field in told(sent) if rule == "REQUEST_FIELD_DROPPED"]
    assert dropped == ["service_tier", "safety_identifier", "text.verbosity"]
    details = [notice.detail for notice in chat({"seed": 1}, "mistral").notices]
    assert details == ["seed is sent as 'random_seed'"]


def test_the_clients_own_value_of_the_providers_name_comes_first() -> None:
    sent = chat({"seed": 1, "random_seed": 2}, "mistral")
    assert beside_messages(sent) == {"random_seed": 2}
    assert told(sent) == [("REQUEST_FIELD_DROPPED", "seed")]


def test_an_absent_value_is_refused_by_its_name_as_well() -> None:
    sent = chat({"verbosity": None}, "groq")
    assert (beside_messages(sent), told(sent)) == ({}, [("REQUEST_FIELD_DROPPED", "verbosity")])


def test_metadata_is_sent_beside_store() -> None:
    kept = {"store": True, "metadata": {"a": "b"}}
    assert beside_messages(chat(kept, "openai")) == kept
    assert beside_messages(chat({**kept, "store": None}, "openai")) == {"store": None}


def test_stream_options_are_sent_beside_stream() -> None:
    options = {"stream_options": {"include_usage": True}}
    assert beside_messages(chat(options, "vllm")) == {}
    assert beside_messages(chat({"stream": True, **options}, "vllm")) == {"stream": True, **options}


@pytest.mark.parametrize("tier", ["auto", "flex"])
def test_a_service_tier_of_the_provider_is_sent(tier: str) -> None:
    assert beside_messages(chat({"service_tier": tier}, "groq")) == {"service_tier": tier}


@sample()
@pytest.mark.parametrize("provider", ["openai", "mistral", "vllm"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tools": [], "tool_choice": "auto"}, {}),
        ({"tools": [], "tool_choice": "none", "parallel_tool_calls": False}, {}),
        ({"tool_choice": "auto"}, {}),
        ({"functions": [], "function_call": "auto"}, {}),
        ({"tools": None}, {}),
        # Without the choice, the answer would not be what the client demands.
        ({"tools": [], "tool_choice": "required"}, {"tool_choice": "required"}),
    ],
)
def test_no_functions_are_no_fields(provider: str, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    sent = chat(fields, provider)
    assert beside_messages(sent) == expected
    assert told(sent) == [("REQUEST_FIELD_DROPPED", name) for name in fields if name not in expected]


def test_a_choice_among_functions_is_sent() -> None:
    schema = {"type": "object", "properties": {}}
    fields = {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}], "tool_choice": "auto"}
    assert beside_messages(chat(fields, "openai")) == fields


def test_without_rules_nothing_changes() -> None:
    fields = {"tools": [], "tool_choice": "auto", "max_tokens": 5, "max_completion_tokens": 9, "metadata": {}}
    for profile in ("none", RequestRules()):
        sent = chat(fields, profile)
        assert (beside_messages(sent), sent.notices) == (fields, [])


FUNCTIONS: Final = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
SAMPLING: Final = {"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.1, "seed": 7}


def for_model(model: str, fields: Mapping[str, Any], profile: str = "openai") -> Exchange:
    return chat({"model": model, **fields}, profile)


@pytest.mark.parametrize(
    ("model", "effort"),
    [
        ("gpt-5.4", "none"),
        ("gpt-5.4-mini-2026-03-05", "none"),
        ("gpt-5.5", "none"),
        ("openai/gpt-5.6-codex", "none"),
        ("gpt-6", "none"),
        ("gpt-6-mini", "none"),
        # These take tools beside an effort, or have no effort `none`.
        ("gpt-5", "high"),
        ("gpt-5.2", "high"),
        ("gpt-5.4-pro", "high"),
        ("gpt-6-astra", "high"),
        ("gpt-6.1-sol", "high"),
        ("o3", "high"),
        ("gpt-5.1-codex", "high"),
    ],
)
def test_an_openai_model_receives_the_effort_that_it_accepts_beside_tools(model: str, effort: str) -> None:
    sent = for_model(model, {"tools": FUNCTIONS, "reasoning_effort": "high"})
    assert json.loads(sent.request.body)["reasoning_effort"] == effort
    assert told(sent) == ([("REQUEST_FIELD_CHANGED", "reasoning_effort")] if effort == "none" else [])
    alone = for_model(model, {"reasoning_effort": "high"})
    assert (json.loads(alone.request.body)["reasoning_effort"], told(alone)) == ("high", [])
    silent = json.loads(for_model(model, {"tools": FUNCTIONS}).request.body)
    assert silent.get("reasoning_effort") == ("none" if effort == "none" else None)


def test_an_effort_of_the_responses_api_is_named_as_its_client_knows_it() -> None:
    tools = [{"type": "function", **FUNCTIONS[0]["function"]}]  # type: ignore[dict-item] # a literal of JSON
    fields = {"model": "gpt-5.5", "input": "hi", "reasoning": {"effort": "high"}, "tools": tools}
    sent = exchange(CLIENTS["responses"][0], fields, PROFILES["openai"])
    assert json.loads(sent.request.body)["reasoning_effort"] == "none"
    assert told(sent) == [("REQUEST_FIELD_CHANGED", "reasoning.effort")]


@sample()
@pytest.mark.parametrize(
    ("model", "effort", "kept"),
    [
        ("gpt-4o", None, {*SAMPLING}),
        ("gpt-5-chat-latest", None, {*SAMPLING}),
        ("gpt-50", None, {*SAMPLING}),
        ("o3", None, {"seed"}),
        ("o4-mini", "low", {"seed"}),
        ("gpt-5-mini", None, {"seed"}),
        ("gpt-5.1-codex", None, {"seed"}),
        ("gpt-5.1", None, {"temperature", "top_p", "seed"}),
        ("gpt-5.1", "low", {"seed"}),
        ("gpt-5.4", None, {"temperature", "top_p", "seed"}),
        ("gpt-5.5", None, {"seed"}),
        ("gpt-5.5", "none", {"temperature", "top_p", "seed"}),
    ],
)
def test_an_openai_model_receives_the_sampling_that_it_accepts(model: str, effort: str | None, kept: set[str]) -> None:
    sent = for_model(model, {**SAMPLING, **({"reasoning_effort": effort} if effort else {})})
    assert {*json.loads(sent.request.body)} & SAMPLING.keys() == kept
    assert {field for _, field in told(sent)} == SAMPLING.keys() - kept


def test_the_only_value_that_a_model_accepts_is_sent() -> None:
    sent = for_model("o3", {"temperature": 1})
    assert (json.loads(sent.request.body)["temperature"], told(sent)) == (1, [])


@pytest.mark.parametrize(("model", "kept"), [("kimi-k2.5", set()), ("moonshot-v1-8k", {"temperature", "top_p"})])
def test_kimi_k_receives_no_sampling(model: str, kept: set[str]) -> None:
    sent = for_model(model, {"temperature": 0.5, "top_p": 0.9}, "kimi-thinking")
    assert {*json.loads(sent.request.body)} & SAMPLING.keys() == kept
    assert len(told(sent)) == 2 - len(kept)


def test_cerebras_receives_reasoning_in_the_field_that_it_knows() -> None:
    thought = {"role": "assistant", "content": "4", "reasoning_content": "2 + 2", "finish_reason": "stop"}
    again = {"messages": [*HELLO, thought, *HELLO]}
    body = json.loads(exchange(decode_chat, again, PROFILES["cerebras"]).request.body)
    assert body["messages"][1] == {"role": "assistant", "content": "4", "reasoning": "2 + 2"}
