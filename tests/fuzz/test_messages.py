"""Law: any body of a Messages request gives an answer of the contract or InvalidRequest, by every adapter."""

import json
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from gateway.adapter import Adapter
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.diagnostics.explain import explain
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.fuzz.exchanges import ADAPTERS, LABEL, POLICIES, STATES
from tests.fuzz.strategies import IDS, NAMES, SCALARS, TEXTS, WILD

DIALECT: Final = AnthropicMessagesDialect()
TYPES: Final = st.sampled_from(
    [
        *("text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("tool_reference", "compaction", "server_tool_use", "container_upload", "", "image_url"),
        *("tool_addition", "tool_removal"),
    ]
)
SOURCES: Final = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["base64", "url", "text", "content", "file"]) | WILD,
        "media_type": TEXTS | WILD,
        "data": TEXTS | WILD,
        "url": TEXTS | WILD,
        "content": TEXTS | WILD,
    },
)


CHANGED_TOOLS: Final[st.SearchStrategy[Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["tool_reference", "tool_definition", "mcp_tool_reference"]) | WILD,
        "name": NAMES | WILD,
        "definition": st.fixed_dictionaries({}, optional={"name": NAMES | WILD, "input_schema": WILD, "type": WILD})
        | WILD,
    },
)


CHANGES: Final[st.SearchStrategy[Any]] = st.lists(
    st.fixed_dictionaries({"type": TYPES, "tool": CHANGED_TOOLS}), max_size=2
)


def _blocks(content: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    block = st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | WILD,
            "text": TEXTS | WILD,
            "source": SOURCES | WILD,
            "title": TEXTS | WILD,
            "thinking": TEXTS | WILD,
            "signature": TEXTS | STATES | WILD,
            "data": TEXTS | WILD,
            "id": IDS | WILD,
            "name": NAMES | WILD,
            "input": WILD,
            "tool_use_id": IDS | WILD,
            "tool_name": NAMES | WILD,
            "content": content,
            "is_error": WILD,
            "cache_control": WILD,
            "tool": CHANGED_TOOLS | WILD,
            "tool_changes": CHANGES | WILD,
        },
    )
    return st.lists(block | WILD, max_size=3)


CONTENTS: Final[st.SearchStrategy[Any]] = TEXTS | _blocks(TEXTS | _blocks(TEXTS | WILD) | WILD) | WILD
MESSAGES: Final[st.SearchStrategy[Any]] = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "system"]) | WILD,
            "content": CONTENTS | st.just([]),
            "output_config": st.fixed_dictionaries({}, optional={"effort": st.sampled_from(["low", "x"]) | WILD})
            | WILD,
            "clear_at": st.sampled_from(["never", "next_user_message"]) | WILD,
        },
    )
    | WILD,
    max_size=5,
)
REFERENCE: Final = st.builds(lambda name: {"type": "tool_reference", "name": name}, st.sampled_from(["a", "b", "c"]))
DIRECTIVES: Final[st.SearchStrategy[Any]] = st.one_of(
    st.builds(lambda tool: {"role": "system", "content": [{"type": "tool_removal", "tool": tool}]}, REFERENCE),
    st.builds(lambda tool: {"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}, REFERENCE),
    st.just({"role": "system", "content": [], "output_config": {"effort": "low"}}),
    st.just({"role": "system", "content": "x", "clear_at": "next_user_message"}),
)
DIRECTED: Final = st.lists(DIRECTIVES | MESSAGES.filter(bool).map(lambda messages: messages[0]), max_size=6)
TOOLS: Final[st.SearchStrategy[Any]] = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": NAMES,
            "type": st.sampled_from(["custom", "bash_20250124", "memory_20250818", "web_search_20250305", None]),
            "description": TEXTS,
            "input_schema": st.dictionaries(TEXTS, WILD, max_size=3),
            "strict": st.booleans(),
            "defer_loading": WILD,
        },
    ),
    max_size=3,
)
FIELDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "system": CONTENTS,
    "tools": TOOLS,
    "tool_choice": st.fixed_dictionaries(
        {"type": st.sampled_from(["auto", "any", "tool", "none"])},
        optional={"name": NAMES, "disable_parallel_tool_use": st.booleans()},
    ),
    "thinking": st.fixed_dictionaries({"type": TEXTS}, optional={"budget_tokens": st.integers(-1, 2**62)}),
    "output_config": st.fixed_dictionaries({}, optional={"effort": st.sampled_from(["low", "max"]), "x": WILD}),
    "metadata": st.fixed_dictionaries({}, optional={"user_id": TEXTS}),
    "stop_sequences": st.lists(TEXTS, max_size=2),
    "thread": st.fixed_dictionaries({"type": TEXTS}),
    "stream": st.booleans(),
    "context_management": WILD,
}
REQUIRED: Final[dict[str, st.SearchStrategy[Any]]] = {
    "model": st.just("m"),
    "max_tokens": st.integers(-1, 2**63 - 1),
    "messages": MESSAGES,
}
REQUESTS: Final = st.fixed_dictionaries(REQUIRED, optional=FIELDS)
# One field is anything at all.
WRONG: Final = st.dictionaries(
    st.sampled_from(["model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "metadata"]),
    SCALARS | WILD,
    max_size=1,
)


@given(DIRECTED, st.sampled_from(sorted(ADAPTERS)), POLICIES)
def test_directives_among_any_messages_are_applied_or_refused(messages: list[Any], name: str, policy: Policy) -> None:
    tools: list[Json] = [{"name": tool, "input_schema": {}} for tool in ("a", "b")]
    check({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}, name, policy)


@given(REQUESTS, WRONG, st.sampled_from(sorted(ADAPTERS)), POLICIES)
def test_any_request_is_answered_or_refused(
    fields: dict[str, Any], wrong: JsonObject, name: str, policy: Policy
) -> None:
    check({**fields, **wrong}, name, policy)


def check(fields: JsonObject, name: str, policy: Policy) -> None:
    """A request is encoded and explained, or refused with an error that its client can read."""
    body = json.dumps(fields).encode()
    try:
        conversation = DIALECT.decode(read_document(body), RequestHead("/v1/messages")).conversation
        assert [shown for turn in conversation.turns for shown in DIALECT.encode_turn(turn)] or not conversation.turns
        request = Exchange(_adapter(name), conversation, policy, label=LABEL).request
    except InvalidRequest as error:
        assert error.message and 400 <= error.status < 500
        msgspec.json.decode(DIALECT.encode_error(error).body)
        return
    msgspec.json.encode(msgspec.to_builtins(explain(conversation, policy, _adapter(name), dialect=DIALECT)))
    assert request.body


def _adapter(name: str) -> Adapter:
    return ADAPTERS[name]
