"""Turns as messages of the API: as the client wrote them, and made from their blocks."""

from typing import Any, Final

import msgspec
import pytest

from adapters.anthropic_messages.messages import encode_message, encode_turn
from gateway.core.conversation import File, Image, Json, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.provider_state import with_provider_state
from tests.adapters.anthropic_messages.client.requests import HELLO, conversation, merged_messages

CACHED: Final[dict[str, Json]] = {"cache_control": {"type": "ephemeral"}}
PNG: Final = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PDF: Final[dict[str, Any]] = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
    **CACHED,
}


def result(content: object, **fields: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "k", "content": content, **fields}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (Text("a", CACHED), {"type": "text", "text": "a", **CACHED}),
        (Text("a", {"type": "refusal"}), {"type": "text", "text": "a"}),
        (
            Image("https://x/y.png", {"detail": "low"}),
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        ),
        (Image("data:image/png;base64,AAAA", CACHED), {"type": "image", "source": PNG, **CACHED}),
        (File("document", PDF), PDF),
        (Reasoning("t"), {"type": "thinking", "thinking": "t", "signature": ""}),
        (
            Reasoning("t", extra=with_provider_state("anthropic", {"signature": "s"})),
            {"type": "thinking", "thinking": "t", "signature": "s"},
        ),
        (
            Reasoning("", extra=with_provider_state("anthropic", {"data": "d"})),
            {"type": "redacted_thinking", "data": "d"},
        ),
        (
            Reasoning("t", extra=with_provider_state("google", {"thought_signature": "g"})),
            {"type": "thinking", "thinking": "t", "signature": ""},
        ),
        (ToolCall("k", "f", '{"a": 1}'), {"type": "tool_use", "id": "k", "name": "f", "input": {"a": 1}}),
        (ToolCall("k", "f", ""), {"type": "tool_use", "id": "k", "name": "f", "input": {}}),
        (ToolCall("k", "f", "[1]"), {"type": "tool_use", "id": "k", "name": "f", "input": {"arguments": "[1]"}}),
    ],
)
def test_a_block_is_written(block: Text | Image | File | Reasoning | ToolCall, expected: dict[str, Any]) -> None:
    message = encode_message(Turn("assistant", (Text("first"), block)))
    assert message == {"role": "assistant", "content": [{"type": "text", "text": "first"}, expected]}


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (Turn("user", (Text("a"),)), {"role": "user", "content": "a"}),
        (Turn("developer", (Text("a"),)), {"role": "system", "content": "a"}),
        (Turn("assistant", ()), {"role": "assistant", "content": ""}),
        (Turn("user", (Text(""), Text("a"))), {"role": "user", "content": [{"type": "text", "text": "a"}]}),
        (
            Turn("tool", (ToolResult("k", ()),)),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k"}]},
        ),
        (
            Turn("tool", (ToolResult("k", (Text("a"),)),), extra=CACHED),
            {"role": "user", "content": [result("a", **CACHED)]},
        ),
        (
            Turn("tool", (ToolResult("k", (Text("a"), Image("data:image/png;base64,AAAA")), is_error=True),)),
            {
                "role": "user",
                "content": [result([{"type": "text", "text": "a"}, {"type": "image", "source": PNG}], is_error=True)],
            },
        ),
    ],
)
def test_a_turn_is_written(turn: Turn, expected: dict[str, Any]) -> None:
    assert encode_turn(turn) == [expected]


def test_a_message_that_nothing_changed_is_the_clients_own() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "a", "unheard_of": 1}], "more": 2}
    (turn,) = conversation(messages=[message]).turns
    assert encode_message(turn) == message
    assert encode_message(turn.changed(Text("b"))) == {"role": "user", "content": "b"}


def test_neighbours_of_one_role_are_one_message_unless_the_client_wrote_them_apart() -> None:
    said = {"type": "text", "text": "and now?"}
    messages = [
        HELLO,
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": [result("x")]},
        {"role": "user", "content": [said]},
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": ""},
    ]
    asked = conversation(messages=messages)
    expected = [result("x"), said, {"type": "text", "text": "Hello"}]
    merged = merged_messages([msgspec.structs.replace(turn, source=None) for turn in asked.turns])
    assert [message["role"] for message in merged] == ["user", "assistant", "user"]
    assert merged[0] == HELLO
    assert merged[2]["content"] == expected
    assert merged_messages(asked.turns) == messages
