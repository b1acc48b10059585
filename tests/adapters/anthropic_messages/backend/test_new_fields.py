"""What Anthropic's API got in 2026 and a client of another API cannot be shown is told, by its name.

Source: the types of the package `anthropic` (2.14): `beta_fallback_block`, `beta_tool_use_block.caller`,
`beta_stop_reason`, `beta_usage.iterations`, `beta_message.context_management`.
"""

import json
from collections.abc import Callable
from typing import TypeAlias

import pytest

from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from gateway.core.conversation import Json
from gateway.core.events import Event, Finish, PassthroughFields, TextDelta, ToolCallStart
from gateway.core.notices import Notice
from gateway.testing.replay import replay

Form: TypeAlias = Callable[..., bytes]

HI: Json = {"type": "text", "text": "hi"}
CALL: dict[str, Json] = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
FROM_CODE: Json = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
SWITCH: dict[str, Json] = {
    "type": "fallback",
    "from": {"model": "a"},
    "to": {"model": "b"},
    "trigger": {"type": "refusal"},
}


def whole(*blocks: Json, stop: str = "end_turn", usage: dict[str, Json] | None = None, **fields: Json) -> bytes:
    """A message that is not streamed."""
    return json.dumps(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [*blocks],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 4, **(usage or {})},
            **fields,
        }
    ).encode()


def streamed(*blocks: Json, stop: str = "end_turn", usage: dict[str, Json] | None = None, **fields: Json) -> bytes:
    """The same as a stream; a text stands whole in the start of its block."""
    begun: dict[str, Json] = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[dict[str, Json]] = [{"type": "message_start", "message": {**begun, "usage": {"input_tokens": 3}}}]
    for index, one in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": one})
        events.append({"type": "content_block_stop", "index": index})
    delta: dict[str, Json] = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 4, **(usage or {})}, **fields})
    events.append({"type": "message_stop"})
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), json.dumps(e).encode()) for e in events)


def read(wire: bytes, *, own_client: bool = False) -> list[Event]:
    return replay(MessagesDecoder(1 << 16, own_client=own_client), [wire])


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.rule, event.detail) for event in events if isinstance(event, Notice)]


FORMS = pytest.mark.parametrize("form", [whole, streamed])


@FORMS
def test_the_caller_of_a_call_is_told(form: Form) -> None:
    events = read(form({**CALL, "caller": FROM_CODE}, stop="tool_use"))
    assert told(events) == [("FIELD_NOT_SHOWN", "the client's dialect has no field for caller")]
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["f"]


@FORMS
def test_a_block_that_no_other_api_has_is_named(form: Form) -> None:
    listing: Json = {"type": "mcp_tool_listing", "tools": []}
    events = read(form(SWITCH, HI, listing, SWITCH))
    assert told(events) == [
        ("PART_UNKNOWN", "a content block of type 'fallback', which only clients of the same API know"),
        ("PART_UNKNOWN", "a content block of type 'mcp_tool_listing', which only clients of the same API know"),
    ]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["hi"]


@FORMS
def test_what_stands_beside_the_message_is_told(form: Form) -> None:
    edits: Json = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3}]}
    usage: dict[str, Json] = {
        "iterations": [{"type": "message", "input_tokens": 3, "output_tokens": 4}],
        "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": 2},
    }
    events = read(form(HI, usage=usage, context_management=edits))
    assert told(events) == [
        ("FIELD_NOT_SHOWN", "the client's dialect has no field for context_management, usage.iterations")
    ]


@FORMS
@pytest.mark.parametrize(
    ("word", "reason", "rules"),
    [
        ("compaction", "stop", ["TURN_INTERRUPTED"]),
        ("pause_turn", "stop", ["TURN_INTERRUPTED"]),
        ("model_context_window_exceeded", "length", []),
        ("brand_new", "stop", ["FINISH_REASON_UNKNOWN"]),
    ],
)
def test_new_stop_reasons(form: Form, word: str, reason: str, rules: list[str]) -> None:
    events = read(form(HI, stop=word))
    assert [(event.reason, event.raw) for event in events if isinstance(event, Finish)] == [(reason, word)]
    assert [rule for rule, _ in told(events)] == rules


@FORMS
def test_a_client_of_the_same_api_is_told_nothing_and_gets_everything(form: Form) -> None:
    wire = form(SWITCH, {**CALL, "caller": FROM_CODE}, stop="tool_use", usage={"iterations": [{}]})
    events = read(wire, own_client=True)
    assert told(events) == []
    passed = repr([event.fields for event in events if isinstance(event, PassthroughFields)]) + repr(
        [event.extra for event in events if isinstance(event, ToolCallStart)]
    )
    assert "fallback" in passed and "code_execution_20260120" in passed and "iterations" in passed
