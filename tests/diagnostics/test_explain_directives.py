"""An explanation lists what messages in mid-conversation change, and whether it is in force."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.diagnostics.explain_request import explain_request
from gateway.diagnostics.explain_text import explain_text
from gateway.diagnostics.explanation import ExplainedDirective, Explanation
from gateway.registry import load_adapter, load_dialect
from gateway.settings import BackendSettings, read_settings

LOOK: Final[dict[str, Any]] = {"name": "look", "input_schema": {"type": "object"}}
READ: Final[dict[str, Any]] = {"name": "read", "input_schema": {"type": "object"}}
MESSAGES: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": "one"},
    {"role": "system", "content": [], "output_config": {"effort": "low"}},
    {"role": "system", "content": "Be quick.", "clear_at": "next_user_message"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {
        "role": "system",
        "content": [
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}},
            {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": READ}},
        ],
    },
    {"role": "system", "content": [], "output_config": {"effort": "max"}},
]
DIRECTIVES: Final = (
    ExplainedDirective(1, "the effort low", False),
    ExplainedDirective(2, "its text only until the next message of the user", False),
    ExplainedDirective(5, "the tool 'look' no longer", True),
    ExplainedDirective(5, "the tool 'read' from there on, which it defines", True),
    ExplainedDirective(6, "the effort max", True),
)


def explained(adapter: str | None) -> Explanation:
    backend: dict[str, Json] = {"adapter": adapter or "text", "base_url": "http://host"}
    settings = read_settings({"backends": {"b": backend}, "models": {"m": {"backend": "b"}}})
    entry = BackendSettings(adapter=adapter or "text", base_url="http://host")
    adapters = {} if adapter is None else {"b": load_adapter(adapter, entry, 1 << 20)}
    body = {"model": "m", "max_tokens": 9, "messages": MESSAGES, "tools": [LOOK]}
    return explain_request(json.dumps(body).encode(), settings, adapters, load_dialect("anthropic_messages"))


@pytest.mark.parametrize("adapter", ["openai_chat", "anthropic_messages", None])
def test_the_directives_are_listed(adapter: str | None) -> None:
    assert explained(adapter).directives == DIRECTIVES


def test_what_is_sent_has_their_effect() -> None:
    told = explained("openai_chat")
    assert told.encoded is not None
    body: Any = told.encoded.decoded
    assert body["reasoning_effort"] == "max"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "read"]
    assert [message["content"] for message in body["messages"]] == [
        "one",
        "two",
        "three",
        "The tool `look` is no longer available.",
    ]
    assert {"DIRECTIVE_APPLIED", "TOOL_REMOVED", "MESSAGE_CLEARED"} <= {notice.rule for notice in told.diagnostics}


def test_a_backend_of_the_same_api_gets_them_as_they_are() -> None:
    told = explained("anthropic_messages")
    assert told.encoded is not None
    body: Any = told.encoded.decoded
    assert body["messages"] == MESSAGES
    assert {notice.rule for notice in told.diagnostics}.isdisjoint({"DIRECTIVE_APPLIED", "TOOL_REMOVED"})


def test_the_page_lists_them() -> None:
    dialect = load_dialect("anthropic_messages")
    lines = explain_text(explained("openai_chat"), MESSAGES, paths=dialect.paths).splitlines()
    at = lines.index("directives")
    assert lines[at + 1] == "  messages[1] the effort low: not in force"
    assert lines[at + 5] == "  messages[6] the effort max: in force"
