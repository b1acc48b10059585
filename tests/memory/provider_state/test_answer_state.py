"""What is kept of an answer: only of a whole one, each piece with its place."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.core.conversation import Json, Text, ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.provider_state import with_provider_state
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought
from gateway.memory.provider_state.answer_state import StateReader
from gateway.memory.provider_state.cached_state import TurnState, decode_state, encode_state

PLAIN = StateRule(reasoning="plain", required="always")
SIGNED = StateRule(provider="p", reasoning="signed", turns="all")
CALLS = StateRule(provider="p", calls=True, turns="loop")


def state(value: Json) -> dict[str, Any]:
    return dict(with_provider_state("p", {"signature": value}))


def call(index: int, extra: dict[str, Any] | None = None) -> list[Event]:
    return [
        ToolCallStart(index, f"c{index}", "read", extra=extra or {}),
        ToolCallDelta(index, '{"a":'),
        ToolCallDelta(index, f"{index}}}"),
        ToolCallEnd(index),
    ]


def read(rule: StateRule, *events: Event, finish: Event | None = None) -> StateReader:
    reader = StateReader(rule)
    # Whichever events one read of the backend holds.
    for event in (ResponseStart(), *events, finish or Finish("stop")):
        reader.feed([event])
    return reader


def test_the_turn_is_what_the_client_sends_back() -> None:
    answer = read(PLAIN, ReasoningDelta("hm"), TextDelta("Let me"), TextDelta(" see."), *call(0), *call(1))
    calls = (ToolCall("c0", "read", '{"a":0}'), ToolCall("c1", "read", '{"a":1}'))
    assert answer.turn.blocks == (Text("Let me see."), *calls)
    assert answer.complete


def test_plain_reasoning_is_kept_beside_calls_and_an_empty_one_counts() -> None:
    assert read(PLAIN, ReasoningDelta("a"), ReasoningDelta("b"), *call(0)).state.thoughts == (Thought("ab"),)
    assert read(PLAIN, *call(0)).state.thoughts == (Thought(""),)
    assert not read(PLAIN, ReasoningDelta("a"), TextDelta("x")).state


def test_an_empty_reasoning_that_no_provider_requires_is_none() -> None:
    assert not read(StateRule(reasoning="plain", turns="all"), *call(0)).state


def test_signed_pieces_keep_their_order_and_their_places() -> None:
    answer = read(
        SIGNED,
        ReasoningDelta("one"),
        ReasoningEnd(state("1")),
        ReasoningEnd(state("redacted")),
        TextDelta("text"),
        ReasoningDelta("two"),
        ReasoningEnd(state("2")),
        *call(0),
        ReasoningDelta("three"),
        ReasoningEnd({**state("3"), "other": 1}),
        *call(1),
    )
    assert answer.state.thoughts == (
        Thought("one", state("1")),
        Thought("", state("redacted")),
        Thought("two", state("2"), 0, True),
        Thought("three", state("3"), 1, True),
    )


def test_reasoning_without_state_is_worth_nothing_to_a_provider_that_signs() -> None:
    assert not read(SIGNED, ReasoningDelta("one"), TextDelta("x")).state
    assert not read(SIGNED, ReasoningDelta("one"), ReasoningEnd(dict(with_provider_state("q", {"a": 1})))).state


def test_the_state_of_calls_is_kept_for_each_of_parallel_calls() -> None:
    answer = read(CALLS, *call(0, {**state("s"), "type": "x"}), *call(1))
    assert answer.state.calls == (state("s"), {})
    assert not read(CALLS, *call(0), *call(1)).state
    assert not read(CALLS, TextDelta("x"), ReasoningEnd(state("s"))).state


def test_state_at_the_end_of_a_call_counts() -> None:
    events = [*call(0)[:-1], ToolCallEnd(0, state("late"))]
    assert read(CALLS, *events).state.calls == (state("late"),)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_is_not_complete(reason: Any) -> None:
    assert not read(PLAIN, ReasoningDelta("a"), *call(0), finish=Finish(reason)).complete


def test_an_answer_without_a_finish_is_not_complete() -> None:
    reader = StateReader(PLAIN)
    reader.feed([ReasoningDelta("a"), *call(0)])
    assert not reader.complete


FIELDS = StateRule(fields=("details", "phase"), turns="all")


def details(*parts: Json) -> PassthroughFields:
    return PassthroughFields("delta", {"details": [*parts], "unknown": 1})


def test_a_field_is_kept_and_others_are_not() -> None:
    event = PassthroughFields("event", {"type": "x", "item": {"type": "message", "phase": "commentary", "status": "s"}})
    assert read(FIELDS, TextDelta("x"), event).state == TurnState(fields={"phase": "commentary"})


def part(text: str, **more: Json) -> dict[str, Json]:
    return {"type": "text", "index": 0, "text": text, **more}


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([part("a"), part("b", format="f"), part("", signature="s")], [part("ab", format="f", signature="s")]),
        # The text so far, again and again.
        ([part("a"), part("ab"), part("abc")], [part("abc")]),
        ([part("a"), part("b", index=1)], [part("a"), part("b", index=1)]),
        ([part("a"), {**part("b"), "type": "other"}], [part("a"), {**part("b"), "type": "other"}]),
        ([{"type": "encrypted", "data": "x"}, {"type": "encrypted", "data": "y"}],) * 1
        + ([{"type": "encrypted", "data": "x"}, {"type": "encrypted", "data": "y"}],),
    ],
)
def test_the_parts_of_a_list_grow(pieces: Sequence[Json], whole: Sequence[Json]) -> None:
    assert read(FIELDS, *[details(piece) for piece in pieces]).state.fields == {"details": [*whole]}


def test_a_state_survives_its_bytes_and_other_bytes_are_none() -> None:
    kept = TurnState((Thought("a", state("1"), 1, True), Thought("")), (state("s"), {}), {"phase": "x"})
    assert decode_state(encode_state(kept)) == kept
    assert decode_state(encode_state(TurnState(version=99))) is None
    assert decode_state(b"\xff\x00") is None
