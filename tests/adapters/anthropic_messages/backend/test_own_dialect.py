"""A request of the same API passes unchanged, with every field and block, known or unknown."""

import json
from typing import Any, Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.decode import decode_document
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json
from gateway.core.policy import LoopGuard, Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange

ADAPTER: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)


def conversation(body: dict[str, Json], **headers: str) -> Conversation:
    named = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    head = RequestHead("/v1/messages", headers=named)
    return decode_document(read_document(json.dumps(body).encode()), head).conversation


def exchange(body: dict[str, Json], policy: Policy | None = None, **headers: str) -> Exchange:
    return Exchange(ADAPTER, conversation(body, **headers), policy or Policy())


def sent(body: dict[str, Json], policy: Policy | None = None) -> Any:  # Any: read as JSON
    return json.loads(exchange(body, policy).request.body)


MARK: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
CALL: Final[Json] = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1.0}, "caller": {"type": "direct"}}
RESULT: Final[Json] = {"type": "tool_result", "tool_use_id": "a", "content": "7", "cache_control": MARK}
SEARCH: Final[Json] = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
BODY: Final[dict[str, Json]] = {
    "model": "m",
    "max_tokens": 5000,
    "stream": True,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": MARK}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                SEARCH,
                CALL,
            ],
        },
        {"role": "user", "content": [RESULT]},
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": [{"type": "container_upload", "file_id": "x"}]},
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "url", "url": "https://host/a.pdf"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            ],
        },
    ],
    "tools": [
        {"name": "f", "input_schema": {"type": "object"}, "cache_control": MARK, "defer_loading": True},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "adaptive", "display": "summarized"},
    "output_config": {"effort": "xhigh", "task_budget": {"type": "tokens", "total": 9}},
    "metadata": {"user_id": "u" * 100},
    "service_tier": "auto",
    "mcp_servers": [{"type": "url", "url": "https://host/mcp", "name": "docs"}],
    "container": "container_1",
    "context_management": {"edits": []},
    "unheard_of": {"of": ["tomorrow", None]},
}


def test_every_field_and_block_is_sent_as_it_came() -> None:
    assert sent(BODY) == BODY


# As Claude Code 2.1.330 sends it beside its other tools.
PLACEHOLDER: Final[Json] = {
    "name": "DeferredToolPlaceholder",
    "description": "Reserved placeholder that keeps deferred tool loading active; never call this tool.",
    "input_schema": {"type": "object", "properties": {}},
    "defer_loading": True,
}


def test_the_placeholder_of_deferred_tools_reaches_its_own_api() -> None:
    body: dict[str, Json] = {**BODY, "tools": [{"name": "f", "input_schema": {"type": "object"}}, PLACEHOLDER]}
    asked = exchange(body)
    assert json.loads(asked.request.body) == body
    assert [notice for notice in asked.notices if notice.rule == "TOOL_NOT_SENT"] == []


@pytest.mark.parametrize(
    "adapter",
    [
        OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20),
        GeminiAdapter(GeminiOptions(), 1 << 20),
        TextAdapter(TextOptions(wire="llama_cpp"), 1 << 20),
        WarpAdapter(WarpOptions(), 1 << 20),
    ],
    ids=lambda adapter: type(adapter).__name__,
)
def test_the_placeholder_of_deferred_tools_reaches_no_other_api(adapter: Adapter) -> None:
    real: Json = {"name": "real_one", "input_schema": {"type": "object"}}
    body: dict[str, Json] = {
        "model": "m",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [PLACEHOLDER, real],
    }
    asked = Exchange(adapter, conversation(body), Policy())
    assert b"DeferredToolPlaceholder" not in asked.request.body and b"real_one" in asked.request.body
    (notice,) = (notice for notice in asked.notices if notice.rule == "TOOL_NOT_SENT")
    assert "'DeferredToolPlaceholder'" in notice.detail
    # What only has its name is a tool like others.
    named: Json = {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}}
    other = Exchange(adapter, conversation({**body, "tools": [named]}), Policy())
    assert b"DeferredToolPlaceholder" in other.request.body


def test_the_betas_are_sent_as_the_header_that_they_were() -> None:
    betas = "context-1m-2025-08-07, interleaved-thinking-2025-05-14"
    asked = exchange(BODY, anthropic_beta=betas, anthropic_version="2020-01-01")
    assert asked.request.headers["anthropic-beta"] == betas
    assert asked.request.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(asked.request.body) == BODY
    assert "anthropic-beta" not in exchange(BODY).request.headers
    assert "anthropic-beta" not in exchange(BODY, anthropic_beta=" ").request.headers


def test_betas_that_no_header_can_carry_are_reported() -> None:
    asked = exchange(BODY, anthropic_beta="a\xe9")
    assert "anthropic-beta" not in asked.request.headers
    assert [notice.rule for notice in asked.notices if notice.stage == "encode"] == ["FIELD_NOT_SENT"]


def test_no_demand_is_written_into_the_prompt() -> None:
    wanted: Json = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    asked = conversation({**BODY, "output_config": wanted})
    prompting = AnthropicMessagesAdapter(AnthropicMessagesOptions(prompted=("response_format",)), 1 << 20)
    body = json.loads(Exchange(prompting, asked, Policy()).request.body)
    assert body == {**BODY, "output_config": wanted}


def test_a_thread_is_never_left_to_the_backend() -> None:
    asked = exchange({**BODY, "thread": {"type": "create"}})
    assert json.loads(asked.request.body) == BODY
    assert [notice.rule for notice in asked.notices if "thread" in notice.detail] == ["FIELD_NOT_SENT"]


def test_results_among_text_stand_first() -> None:
    said: Json = {"type": "text", "text": "And?"}
    messages: Json = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [said, RESULT]},
    ]
    assert sent({**BODY, "messages": messages})["messages"][2:] == [{"role": "user", "content": [RESULT, said]}]


def test_a_turn_that_a_pass_has_changed_is_written_anew() -> None:
    messages: list[Json] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, CALL]},
        {"role": "user", "content": "And?"},
    ]
    asked = sent({**BODY, "messages": messages})["messages"]
    assert [block["type"] for block in asked[1]["content"]] == ["thinking", "tool_use"]
    assert asked[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert [block["type"] for block in asked[2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize("choice", [None, {"type": "auto"}])
def test_a_pass_may_forbid_calls(choice: Json) -> None:
    hello: dict[str, Json] = {"role": "user", "content": "Hello"}
    again = [message for number in range(3) for message in round_of(f"a{number}")]
    body = {**BODY, "tool_choice": choice}
    policy = Policy(loop_guard=LoopGuard(3, "no_tools"))
    assert sent({**body, "messages": [hello, *again]}, policy)["tool_choice"] == {"type": "none"}
    assert sent({**body, "messages": [hello, *again[:2]]}, policy)["tool_choice"] == choice


def round_of(call_id: str) -> list[dict[str, Json]]:
    """A call and its result."""
    call: Json = {"type": "tool_use", "id": call_id, "name": "f", "input": {"n": 1}}
    result: Json = {"type": "tool_result", "tool_use_id": call_id, "content": "7"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
