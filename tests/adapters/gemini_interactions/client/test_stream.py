"""What a stream of steps says at its edges: state, silence, failures, text that breaks lines."""

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from gateway.core.errors import BackendTruncated
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.provider_state import with_provider_state
from gateway.testing.dialect_case import HEAD, greeting
from tests.adapters.gemini_interactions.client.stored import DIALECT
from tests.adapters.gemini_interactions.client.test_conformance import CASE

STATE: Final = with_provider_state("google", {"thought_signature": "c2ln"})
OTHER: Final = with_provider_state("anthropic", {"signature": "c2ln"})
BEGUN: Final = ["interaction.created", "interaction.status_update"]


def sent(data: bytes) -> list[Any]:
    frames = [frame.split(b"\n") for frame in data.split(b"\n\n") if frame]
    return [json.loads(line.removeprefix(b"data: ")) for _, line in frames if line != b"data: [DONE]"]


def streamed(*events: Event) -> list[Any]:
    encoder = DIALECT.stream_encoder(greeting(CASE), HEAD)
    data = encoder.feed([ResponseStart(), *events])
    return sent(data + encoder.close())


def whole(*events: Event) -> Any:
    return json.loads(DIALECT.encode_answer(greeting(CASE), HEAD, [ResponseStart(), *events]))


@pytest.mark.parametrize(
    ("events", "steps"),
    [
        (
            [ReasoningDelta("Hm."), ReasoningEnd(STATE)],
            [{"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "Hm."}]}],
        ),
        (
            [ReasoningDelta("Hm."), ReasoningEnd(OTHER)],
            [{"type": "thought", "summary": [{"type": "text", "text": "Hm."}]}],
        ),
        ([ReasoningEnd(STATE)], [{"type": "thought", "signature": "c2ln"}]),
        ([ReasoningEnd(OTHER)], []),
        (
            [ToolCallStart(0, "k", "f"), ToolCallEnd(0, STATE)],
            [{"type": "function_call", "id": "k", "name": "f", "arguments": {}, "signature": "c2ln"}],
        ),
    ],
)
def test_only_state_of_google_is_shown(events: Sequence[Event], steps: list[Any]) -> None:
    assert whole(*events, Finish("stop"))["steps"] == steps
    shown = [event for event in streamed(*events, Finish("stop")) if event["event_type"].startswith("step.")]
    signatures = [event["delta"]["signature"] for event in shown if "signature" in event.get("delta", {})]
    assert signatures == [step["signature"] for step in steps if "signature" in step]


def test_text_behind_hidden_state_keeps_the_numbers_of_steps() -> None:
    events = streamed(TextDelta("a"), ReasoningEnd(OTHER), TextDelta("b"), Finish("stop"))
    assert [event["index"] for event in events if event["event_type"] == "step.start"] == [0, 1]


def test_interleaved_calls_are_steps_one_after_another() -> None:
    events = streamed(
        *[ToolCallStart(index, f"k{index}", "f") for index in range(2)],
        *[ToolCallDelta(index, '{"a":') for index in range(2)],
        *[ToolCallDelta(index, "1}") for index in range(2)],
        *[ToolCallEnd(index) for index in (1, 0)],
        Finish("tool_calls"),
    )
    kinds = [(event["event_type"], event["index"]) for event in events if "index" in event]
    assert [index for _, index in kinds] == sorted(index for _, index in kinds)
    pieces: dict[int, str] = {0: "", 1: ""}
    for event in events:
        if event["event_type"] == "step.delta":
            pieces[event["index"]] += event["delta"]["arguments"]
    assert pieces == {0: '{"a":1}', 1: '{"a":1}'}
    assert events[-1]["interaction"]["status"] == "requires_action"


def test_an_answer_of_nothing_is_complete() -> None:
    events = streamed(Finish("stop"), UsageReport(3, 0, 3))
    assert [event["event_type"] for event in events] == [*BEGUN, "interaction.completed"]
    assert whole(Finish("stop"))["steps"] == []


def test_silence_changes_nothing() -> None:
    encoder = DIALECT.stream_encoder(greeting(CASE), HEAD)
    assert encoder.quiet().startswith(b":") and encoder.quiet().endswith(b"\n\n")
    assert encoder.feed([ResponseStart()]) == b""


def test_a_failure_is_the_last_event_and_no_mark_of_the_end_follows() -> None:
    encoder = DIALECT.stream_encoder(greeting(CASE), HEAD)
    data = encoder.feed([ResponseStart(), TextDelta("Half")]) + encoder.fail(BackendTruncated("It broke off."))
    data += encoder.close() + encoder.fail(BackendTruncated("Again."))
    events = sent(data)
    assert events[-1] == {
        "event_type": "error",
        "error": {"code": events[-1]["error"]["code"], "message": "It broke off."},
    }
    assert b"[DONE]" not in data and "interaction.completed" not in [event["event_type"] for event in events]


def test_a_text_that_breaks_lines_is_one_line() -> None:
    encoder = DIALECT.stream_encoder(greeting(CASE), HEAD)
    data = encoder.feed([ResponseStart(), TextDelta("a"), TextDelta("\u2028\u2029\x85\r\n"), TextDelta("b")])
    assert "".join(event["delta"]["text"] for event in sent(data) if "delta" in event) == "a\u2028\u2029\x85\r\nb"
    assert all(len(frame.decode().splitlines()) == 2 for frame in data.split(b"\n\n") if frame)


def grown(*, stored: bool) -> int:
    """The bytes of memory by which an encoder grows with a long text and a call with long arguments."""
    encoder = DIALECT.stream_encoder(greeting(CASE), msgspec.structs.replace(HEAD, stored=stored))
    encoder.feed([ResponseStart(), TextDelta("begin")])
    tracemalloc.start()
    try:
        for at in range(1000):
            encoder.feed([TextDelta(f"{at} {'text' * 50}")])
        encoder.feed([ToolCallStart(0, "call_1", "f")])
        for at in range(1000):
            encoder.feed([ToolCallDelta(0, f"{at} {'text' * 50}")])
        encoder.feed([ToolCallEnd(0), Finish("tool_calls")])
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_stream_that_is_not_stored_does_not_grow_with_its_answer() -> None:
    assert grown(stored=True) > 400_000
    assert grown(stored=False) < 10_000
