"""The fields by which clients say what of a prompt to cache reach every backend that has some, in its own words.

Sources: the types of the packages openai (`prompt_cache_breakpoint`, `prompt_cache_options`) and anthropic
(`cache_control`).
"""

import json
import re
from typing import Any, Final

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.adapter import Adapter
from gateway.core.conversation import Json
from gateway.core.policy import Policy, PromptCache
from gateway.core.requirements import breaches
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES

CHAT: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
RESPONSES: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
GEMINI: Final = GeminiAdapter(GeminiOptions(), 1 << 20)

CHAT_CLIENT: Final = OpenAIChatDialect()
MESSAGES_CLIENT: Final = AnthropicMessagesDialect()
RESPONSES_CLIENT: Final = OpenAIResponsesDialect()

MARKED: Final = re.compile("cache_control|prompt_cache_breakpoint|prompt_cache_options")
CACHED: Final[dict[str, Json]] = {"cache_control": {"type": "ephemeral"}}
HOUR: Final[dict[str, Json]] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BREAKPOINT: Final[dict[str, Json]] = {"prompt_cache_breakpoint": {"mode": "explicit"}}
LONG: Final[dict[str, Json]] = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}

# What a client of the Messages API marks: a tool, two blocks of the system prompt, a call, a result, its last text.
AGENT: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "tools": [{"name": "look", "input_schema": {"type": "object"}, **CACHED}],
    "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", **CACHED}],
    "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "k", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k", "content": "seen", **CACHED}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": [{"type": "text", "text": "And?", **CACHED}]},
    ],
}
CODEX: Final[dict[str, Any]] = {
    "model": "m",
    "input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief.", **BREAKPOINT}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "function_call", "call_id": "k", "name": "look", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "k",
            "output": [{"type": "input_text", "text": "seen", **BREAKPOINT}],
        },
    ],
}


def exchanged(
    dialect: Dialect, request: dict[str, Any], adapter: Adapter, policy: Policy, model: str = "gpt-5.6"
) -> Exchange:
    """A client's request to a model of a backend."""
    read = dialect.decode(read_document(json.dumps(request).encode()), RequestHead(""))
    return Exchange(adapter, msgspec.structs.replace(read.conversation, model=model), policy)


def sent(
    dialect: Dialect, request: dict[str, Any], adapter: Adapter, model: str = "gpt-5.6", profile: str = "none"
) -> tuple[Any, list[str]]:
    """What a backend receives, and what the notices say of caches."""
    exchange = exchanged(dialect, request, adapter, Policy(profile=PROFILES[profile]), model)
    told = [one.detail for one in exchange.notices if "cache" in one.detail]
    return json.loads(exchange.request.body), told


def test_marks_of_the_messages_api_are_breakpoints_of_chat_completions() -> None:
    body, told = sent(MESSAGES_CLIENT, AGENT, CHAT, profile="openai")
    system, _, _, result, _, last = body["messages"]
    assert system["content"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Be kind.", **BREAKPOINT},
    ]
    assert result["content"] == [{"type": "text", "text": "seen", **BREAKPOINT}]
    assert last["content"] == [{"type": "text", "text": "And?", **BREAKPOINT}]
    assert "cache_control" not in json.dumps(body)
    assert told == [
        "cache_control (3) is sent as prompt_cache_breakpoint",
        "cache_control (1) is not sent: the backend has no mark for its place (tools)",
    ]


def test_marks_of_the_messages_api_are_breakpoints_of_the_responses_api() -> None:
    body, told = sent(MESSAGES_CLIENT, AGENT, RESPONSES)
    system, _, _, result, _, last = body["input"]
    assert system["content"][1] == {"type": "input_text", "text": "Be kind.", **BREAKPOINT}
    assert result["output"] == [{"type": "input_text", "text": "seen", **BREAKPOINT}]
    assert last["content"] == [{"type": "input_text", "text": "And?", **BREAKPOINT}]
    assert told[0] == "cache_control (3) is sent as prompt_cache_breakpoint"


def test_marks_of_the_messages_api_stay_where_openrouter_takes_them() -> None:
    body, told = sent(MESSAGES_CLIENT, AGENT, CHAT, "anthropic/claude-opus-5", "openrouter")
    system, _, _, result, _, last = body["messages"]
    assert system["content"][1] == {"type": "text", "text": "Be kind.", **CACHED}
    assert result["content"] == [{"type": "text", "text": "seen", **CACHED}]
    assert last["content"] == [{"type": "text", "text": "And?", **CACHED}]
    assert told == ["cache_control (1) is not sent: the backend has no mark for its place (tools)"]


def test_breakpoints_of_openai_are_marks_of_the_messages_api() -> None:
    body, told = sent(RESPONSES_CLIENT, CODEX, MESSAGES, "claude-opus-5")
    assert body["system"] == [{"type": "text", "text": "Be brief.", **CACHED}]
    assert body["messages"][-1]["content"][-1]["content"] == [{"type": "text", "text": "seen", **CACHED}]
    assert told == ["prompt_cache_breakpoint (2) is sent as cache_control"]


def test_breakpoints_of_openai_reach_openai_through_its_other_api() -> None:
    body, told = sent(RESPONSES_CLIENT, CODEX, CHAT, profile="openai")
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Be brief.", **BREAKPOINT}]
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "seen", **BREAKPOINT}]
    chat = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **LONG}]}]}
    body, more = sent(CHAT_CLIENT, chat, RESPONSES)
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "a", **LONG}]
    assert (told, more) == ([], [])


def test_a_lifetime_is_the_shortest_that_is_long_enough() -> None:
    hour = {**AGENT, "messages": [{"role": "user", "content": [{"type": "text", "text": "And?", **HOUR}]}]}
    body, told = sent(MESSAGES_CLIENT, hour, RESPONSES)
    assert body["input"][-1]["content"] == [{"type": "input_text", "text": "And?", **LONG}]
    # One request has one lifetime: an earlier mark must not end before a later one.
    assert body["input"][0]["content"][1] == {"type": "input_text", "text": "Be kind.", **LONG}
    assert told[0] == "cache_control (2) is sent as prompt_cache_breakpoint for 12h, the nearest to 1h"
    half = {**CODEX, "prompt_cache_options": {"mode": "explicit", "ttl": "30m"}}
    body, told = sent(RESPONSES_CLIENT, half, MESSAGES, "claude-opus-5")
    assert body["system"] == [{"type": "text", "text": "Be brief.", **HOUR}]
    assert "cache_control" not in body
    assert told == ["prompt_cache_breakpoint (2) is sent as cache_control for 1h, the nearest to 30m"]


def test_a_lifetime_that_the_backend_has_not_is_told_and_a_shorter_one_is_a_loss() -> None:
    """Qwen has marks of five minutes alone; OpenAI's chat completions have 30 minutes."""
    messages: dict[str, Any] = {"model": "m", "max_tokens": 9}
    hour = {**messages, "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **HOUR}]}]}
    body, told = sent(MESSAGES_CLIENT, hour, CHAT, "qwen3-max", "qwen")
    assert body["messages"][0]["content"][0]["cache_control"]["ttl"] == "5m"
    assert told == ["cache_control (1) is sent for 5m, the nearest to 1h"]
    short = {**messages, "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **CACHED}]}]}
    whole = {**messages, "messages": [{"role": "user", "content": "a"}], **HOUR}
    long = {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "a", **LONG}]}]}
    for dialect, request, adapter, model, profile, words in (
        (MESSAGES_CLIENT, hour, CHAT, "qwen3-max", "qwen", ["cache"]),
        (MESSAGES_CLIENT, hour, CHAT, "gpt-5.6", "openai", ["cache"]),
        (MESSAGES_CLIENT, hour, RESPONSES, "gpt-5.6", "none", []),
        (MESSAGES_CLIENT, short, CHAT, "gpt-5.6", "openai", []),
        (MESSAGES_CLIENT, whole, CHAT, "gpt-5.6", "openai", ["cache"]),
        (MESSAGES_CLIENT, whole, RESPONSES, "gpt-5.6", "none", []),
        (RESPONSES_CLIENT, long, CHAT, "gpt-5.6", "openai", ["cache"]),
        (RESPONSES_CLIENT, long, MESSAGES, "claude-opus-5", "none", ["cache"]),
    ):
        made = exchanged(dialect, request, adapter, Policy(profile=PROFILES[profile]), model)
        assert [*breaches(made.notices)] == words, (request, model, made.notices)


def test_a_mark_stands_on_a_part_that_takes_one() -> None:
    said = [{"type": "text", "text": "I look.", **CACHED}]
    call = {"type": "tool_use", "id": "k", "name": "look", "input": {}, **CACHED}
    messages = [AGENT["messages"][0], {"role": "assistant", "content": [*said, call]}, *AGENT["messages"][2:]]
    body, told = sent(MESSAGES_CLIENT, {**AGENT, "tools": [], "messages": messages}, CHAT, profile="openai")
    assert body["messages"][2]["content"] == "I look."
    assert told[1] == "cache_control (2) is not sent: the backend has no mark for its place (assistant, calls)"


@pytest.mark.parametrize(("model", "profile"), [("gpt-5.1", "openai"), ("gpt-4.1", "azure"), ("m", "none")])
def test_a_model_without_breakpoints_gets_none(model: str, profile: str) -> None:
    body, told = sent(MESSAGES_CLIENT, AGENT, CHAT, model, profile)
    assert not MARKED.search(json.dumps(body))
    assert told == [
        "the backend has no field for cache_control (3) of messages",
        "the backend has no field for cache_control (1) of tools",
    ]
    body, told = sent(RESPONSES_CLIENT, {**CODEX, "prompt_cache_options": {"ttl": "30m"}}, CHAT, model, profile)
    assert not MARKED.search(json.dumps(body))
    assert told == [
        "the backend has no field for 'prompt_cache_options'",
        "the backend has no field for prompt_cache_breakpoint (2) of input",
    ]


@pytest.mark.parametrize("model", ["gpt-5.6", "gpt-5.6-sol", "gpt-5.10", "gpt-6", "openai/gpt-6.1-sol", "gpt-10"])
def test_the_models_of_openai_that_take_breakpoints(model: str) -> None:
    body, _ = sent(MESSAGES_CLIENT, AGENT, CHAT, model, "openai")
    assert "prompt_cache_breakpoint" in json.dumps(body)


def test_gemini_caches_by_itself_and_the_notice_says_what_is_not_sent() -> None:
    body, told = sent(MESSAGES_CLIENT, {**AGENT, **CACHED}, GEMINI, "gemini-3-pro")
    assert not MARKED.search(json.dumps(body))
    assert told == [
        "the backend has no field for 'cache_control'",
        "the backend has no field for cache_control (3) of messages",
        "the backend has no field for cache_control (1) of tools",
    ]


def test_the_automatic_mark_of_the_messages_api() -> None:
    plain = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Look."}]}
    body, told = sent(MESSAGES_CLIENT, {**plain, **CACHED}, CHAT, profile="openai")
    assert not MARKED.search(json.dumps(body))
    assert told == ["cache_control is not sent: the backend marks the end of a prompt by itself"]
    body, told = sent(MESSAGES_CLIENT, {**plain, **HOUR}, RESPONSES)
    assert body["prompt_cache_options"] == {"ttl": "12h"}
    assert told == ["cache_control is sent as prompt_cache_options for 12h, the nearest to 1h"]
    body, told = sent(MESSAGES_CLIENT, {**plain, **HOUR}, CHAT, "anthropic/claude-opus-5", "openrouter")
    assert (body["cache_control"], told) == (HOUR["cache_control"], [])
    body, told = sent(MESSAGES_CLIENT, {**plain, **HOUR}, MESSAGES)
    assert (body["cache_control"], told) == (HOUR["cache_control"], [])


def test_options_of_openai() -> None:
    asked: dict[str, Json] = {"mode": "implicit", "ttl": "12h", "prewarm": False, "comparison_response_id": "resp_1"}
    body, told = sent(RESPONSES_CLIENT, {**CODEX, "prompt_cache_options": asked}, CHAT, profile="openai")
    assert body["prompt_cache_options"] == {"mode": "implicit", "ttl": "30m"}
    assert told == [
        "prompt_cache_options is sent for 30m, the nearest to 12h",
        "prompt_cache_options (comparison_response_id, prewarm) is not sent: the backend has no field for it",
    ]
    body, told = sent(RESPONSES_CLIENT, {**CODEX, "prompt_cache_options": asked}, MESSAGES, "claude-opus-5")
    assert body["cache_control"] == HOUR["cache_control"]
    assert told == [
        "prompt_cache_breakpoint (2) is sent as cache_control for 1h, the nearest to 12h",
        "prompt_cache_options is sent as cache_control for 1h, the nearest to 12h",
        "prompt_cache_options (comparison_response_id, prewarm) is not sent: the backend has no field for it",
    ]
    body, told = sent(RESPONSES_CLIENT, {**CODEX, "prompt_cache_options": asked}, RESPONSES)
    assert (body["prompt_cache_options"], told) == (asked, [])
    chat = {"model": "m", "messages": [{"role": "user", "content": "a"}], "prompt_cache_options": {"mode": "explicit"}}
    body, told = sent(CHAT_CLIENT, chat, RESPONSES)
    assert (body["prompt_cache_options"], told) == ({"mode": "explicit"}, [])


def test_of_more_breakpoints_than_the_messages_api_takes_the_latest_are_sent() -> None:
    """OpenAI writes the latest four of any number; Anthropic refuses a fifth one."""
    parts = [{"type": "input_text", "text": f"part {n}", **BREAKPOINT} for n in range(6)]
    body, told = sent(RESPONSES_CLIENT, {"model": "m", "input": [{"role": "user", "content": parts}]}, MESSAGES)
    marked = [part["text"] for part in body["messages"][0]["content"] if "cache_control" in part]
    assert marked == ["part 2", "part 3", "part 4", "part 5"]
    assert told == [
        "prompt_cache_breakpoint (4) is sent as cache_control",
        "prompt_cache_breakpoint (2) is not sent: the backend takes 4",
    ]


@pytest.mark.parametrize("value", [None, 7, "ephemeral", [], {}, {"ttl": 5}, {"ttl": "2y", "type": ["x"]}])
def test_marks_of_any_form_are_read(value: Json) -> None:
    """Null is no mark, as in Anthropic's type; any other value is one, without a lifetime that is not known."""
    marks = {"cache_control": value}
    turn = {"role": "user", "content": [{"type": "text", "text": "a", **marks}, {"type": "text", "text": "b"}]}
    request = {"model": "m", "max_tokens": 9, "messages": [turn], **marks}
    body, _ = sent(MESSAGES_CLIENT, request, CHAT, profile="openai")
    (sent_turn,) = body["messages"]
    assert sent_turn["content"][0] == {"type": "text", "text": "a", **({} if value is None else BREAKPOINT)}


def test_a_document_says_that_its_mark_is_not_sent() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    turn = {"role": "user", "content": [{"type": "document", "source": source, **CACHED}]}
    _, told = sent(MESSAGES_CLIENT, {"model": "m", "max_tokens": 9, "messages": [turn]}, RESPONSES)
    assert told == ["cache_control of a document is not sent: it is written anew"]


def test_a_key_is_made_of_the_session_where_the_settings_ask_for_it() -> None:
    request = {**AGENT, "metadata": {"user_id": "user_1_session_2"}}
    keyed, plain = Policy(prompt_cache=PromptCache(key=True)), Policy()
    bodies = [
        json.loads(exchanged(MESSAGES_CLIENT, request, RESPONSES, policy).request.body) for policy in (keyed, plain)
    ]
    assert "prompt_cache_key" not in bodies[1]
    key = bodies[0]["prompt_cache_key"]
    assert len(key) == 32
    assert "session" not in key
    again = exchanged(MESSAGES_CLIENT, {**request, "messages": AGENT["messages"][:1]}, CHAT, keyed)
    assert json.loads(again.request.body)["prompt_cache_key"] == key
    assert [one.detail for one in again.notices if one.rule == "CACHE_KEY_ADDED"] == [
        "prompt_cache_key is made of metadata.user_id"
    ]
    other = exchanged(MESSAGES_CLIENT, {**AGENT, "metadata": {"user_id": "user_1_session_3"}}, RESPONSES, keyed)
    assert json.loads(other.request.body)["prompt_cache_key"] != key


def test_no_key_is_made_where_the_client_has_one_or_the_backend_has_no_field() -> None:
    keyed = Policy(prompt_cache=PromptCache(key=True))
    own = exchanged(RESPONSES_CLIENT, {**CODEX, "prompt_cache_key": "mine", "user": "me"}, CHAT, keyed)
    assert json.loads(own.request.body)["prompt_cache_key"] == "mine"
    for adapter, request in ((MESSAGES, {**CODEX, "user": "me"}), (CHAT, CODEX)):
        sent_body = json.loads(exchanged(RESPONSES_CLIENT, request, adapter, keyed).request.body)
        assert "prompt_cache_key" not in sent_body
