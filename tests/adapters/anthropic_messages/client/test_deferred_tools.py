"""Source: Anthropic, "Tool search tool": `defer_loading`, the types of the server's searches, and `tool_reference`."""

from typing import Final

import pytest

from adapters.anthropic_messages.client.decode import decode_document
from gateway.core.conversation import Conversation, DeferredTools, Json
from gateway.dialect import RequestHead
from gateway.dialects.document import Document

SCHEMA: Final[Json] = {"type": "object"}
PLAIN: Final[Json] = {"name": "plain", "input_schema": SCHEMA}
LATER: Final[list[Json]] = [{"name": name, "input_schema": SCHEMA, "defer_loading": True} for name in ("f", "g", "h")]
REGEX: Final = "tool_search_tool_regex_20251119"


def decoded(messages: list[Json], *tools: Json) -> Conversation:
    fields: dict[str, Json] = {"model": "m", "max_tokens": 5, "messages": messages, "tools": [*tools]}
    return decode_document(Document(fields), RequestHead("/v1/messages")).conversation


def user(content: Json) -> Json:
    return {"role": "user", "content": content}


def reference(name: Json) -> Json:
    return {"type": "tool_reference", "tool_name": name}


def result(*content: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": "t", "content": [*content]}


def test_deferred_tools_wait_for_a_search_of_the_server() -> None:
    found = decoded([user("x")], {"type": REGEX, "name": "tool_search_tool_regex"}, PLAIN, *LATER)
    assert found.deferred == DeferredTools(frozenset("fgh"), (), frozenset({REGEX}))


def test_references_load_tools_each_at_its_message() -> None:
    searched: Json = {
        "type": "tool_search_tool_result",
        "tool_use_id": "s",
        "content": {"type": "tool_search_tool_search_result", "tool_references": [reference("h")]},
    }
    call: Json = {"type": "tool_use", "id": "t", "name": "plain", "input": {}}
    messages: list[Json] = [
        user("x"),
        {"role": "assistant", "content": [searched, call]},
        user([result(reference("g"), reference("unknown"), reference(7))]),
        user("y"),
    ]
    found = decoded(messages, PLAIN, *LATER)
    assert found.deferred == DeferredTools(frozenset("fgh"), ((1, "h"), (2, "g")))


@pytest.mark.parametrize("flag", [False, None, 1, "true"])
def test_a_tool_without_the_flag_is_offered(flag: Json) -> None:
    tool: Json = {"name": "f", "input_schema": SCHEMA, "defer_loading": flag}
    assert decoded([user("x")], PLAIN, tool).deferred is None


@pytest.mark.parametrize("odd", [None, 7, "text", [None], [{"type": "tool_result"}], [{"type": ["x"], "content": {}}]])
def test_content_of_any_form_loads_nothing(odd: Json) -> None:
    found = decoded([user("x"), {"role": "assistant", "content": odd}], *LATER)
    assert found.deferred is not None and found.deferred.loaded == ()
