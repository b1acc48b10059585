"""A request of the Messages API reaches a backend of the same API as its client wrote it.

The values are those of the published types of Anthropic's SDK. The exceptions are listed in
docs/messages-backends.md, "A client of the same API".
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.decode import decode_document
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

PUBLISHED: Final = json.loads((Path(__file__).parent / "anthropic_messages.json").read_text())
ADAPTER: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
BODY: Final[dict[str, Any]] = {"model": "m", "max_tokens": 9, "messages": [HELLO]}
TOOL: Final[dict[str, Any]] = {"name": "a", "input_schema": {"type": "object"}}
CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "a", "name": "a", "input": {}}
RESULT: Final[dict[str, Any]] = {"type": "tool_result", "tool_use_id": "a", "content": "7"}
# A thread is never left to the backend: only what continues one refers to it.
FIELDS: Final = [
    *[
        (name, value)
        for name, values in PUBLISHED["fields"].items()
        if name not in {"thread", "tools"}
        for value in values
    ],
    # Several versions of one tool have the same name.
    *[("tools", [tool]) for tools in PUBLISHED["fields"]["tools"] for tool in tools],
]


def sent(body: dict[str, Any]) -> Any:
    document = read_document(json.dumps(body).encode())
    conversation = decode_document(document, RequestHead("/v1/messages")).conversation
    return json.loads(Exchange(ADAPTER, conversation, Policy()).request.body)


def messages_with(block: dict[str, Any]) -> list[dict[str, Any]]:
    """A history in which the API accepts the block."""
    said: list[dict[str, Any]] = [HELLO, {"role": "assistant", "content": [block]}]
    match block["type"]:
        case "tool_use":
            return [*said, {"role": "user", "content": [RESULT | {"tool_use_id": block["id"]}]}]
        case "tool_result":
            call = CALL | {"id": block["tool_use_id"]}
            return [HELLO, {"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
        case kind if kind in {one["type"] for one in PUBLISHED["content"]}:
            return [*said, {"role": "user", "content": "Go on."}]
        case "tool_addition" | "tool_removal":
            return [HELLO, {"role": "system", "content": [block]}]
        case _:
            return [{"role": "user", "content": [block]}]


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=[name for name, _ in FIELDS])
def test_every_field_arrives_with_what_is_new_in_it(name: str, value: Any) -> None:
    value = with_new_fields(value) if name not in {"model"} else "m"
    body = BODY | {"tools": [TOOL], name: value, **NEW_FIELDS}
    assert sent(body) == body


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "x_choice"}},
        {"output_config": {"effort": "x_effort", "format": {"type": "x_format"}}},
        {"thinking": {"type": "x_thinking"}},
    ],
)
def test_a_new_word_arrives(fields: dict[str, Any]) -> None:
    assert sent(BODY | fields) == BODY | fields


@pytest.mark.parametrize("block", PUBLISHED["blocks"], ids=[block["type"] for block in PUBLISHED["blocks"]])
def test_every_block_arrives_with_what_is_new_in_it(block: dict[str, Any]) -> None:
    body = BODY | {"messages": with_new_fields(messages_with(block)), "tools": [TOOL]}
    assert sent(body) == body


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_block_of_a_new_type_arrives(role: str) -> None:
    block = with_new_fields({"type": "x_block", "content": [{"type": "x_part"}]})
    body = BODY | {"messages": [HELLO, {"role": role, "content": [block]}, HELLO]}
    assert sent(body) == body


@pytest.mark.parametrize("system", ["Be brief.", "", [], None, [{"type": "text", "text": "a"}], [{"type": "x_block"}]])
def test_the_system_prompt_arrives_in_its_own_form(system: Any) -> None:
    body = BODY | {"system": system}
    assert sent(body) == body


def test_neighbouring_messages_of_one_role_arrive_apart() -> None:
    said = {"role": "assistant", "content": "Hm."}
    body = BODY | {
        "messages": [HELLO, HELLO, said, {**said, **NEW_FIELDS}, HELLO | {"content": [CALL | {"type": "x"}]}]
    }
    assert sent(body) == body


@pytest.mark.parametrize(
    "directive",
    [
        {"content": [], "output_config": {"effort": "low"}},
        {"output_config": {"effort": "low"}},
        {"content": [], "output_config": {"effort": "x_effort"}},
        {"content": "Now.", "clear_at": "next_user_message"},
        {"content": [{"type": "text", "text": "Now."}], "clear_at": "never", "output_config": {}},
    ],
)
def test_a_directive_arrives(directive: dict[str, Any]) -> None:
    directive = {"role": "system", **directive}
    body = BODY | {"messages": [HELLO, {"role": "assistant", "content": "Hm."}, directive, HELLO]}
    assert sent(body) == body


def test_neighbouring_calls_with_the_results_of_both_are_one_round() -> None:
    """Anthropic: "consecutive user or assistant turns in your request will be combined into a single turn"."""
    calls = [CALL, CALL | {"id": "b"}]
    results = {"role": "user", "content": [RESULT, RESULT | {"tool_use_id": "b"}]}
    said = [{"role": "assistant", "content": [call]} for call in calls]
    assert sent(BODY | {"messages": [HELLO, *said, results]})["messages"] == [
        HELLO,
        {"role": "assistant", "content": calls},
        results,
    ]
