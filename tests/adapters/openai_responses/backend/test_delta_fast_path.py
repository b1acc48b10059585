import json
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.openai_responses.backend.delta_fast_path import DeltaFastPath
from adapters.openai_responses.backend.event_reader import EventReader
from adapters.openai_responses.function_names import ToolNames
from gateway.core.errors import BackendError
from gateway.core.events import Event, ReasoningDelta, TextDelta, ToolCallDelta
from gateway.core.notices import Notice
from gateway.response.passthrough import Passthrough
from tests.adapters.openai_responses.backend.reading import played
from tests.adapters.openai_responses.backend.wires import (
    WireEvent,
    added,
    call,
    call_events,
    created,
    delta,
    done,
    ended,
    message,
    reasoning,
    sse,
    text_events,
)


def begun(*events: WireEvent) -> DeltaFastPath:
    """A fast path behind these events."""
    reader = EventReader(1, ToolNames, Passthrough(passes=True))
    for event in (created(), *events):
        reader.event(event)
    return DeltaFastPath(reader)


def read(path: DeltaFastPath, *events: WireEvent) -> tuple[list[Event], bytes | None]:
    """What is read of these events, and the first that is not."""
    found: list[Event] = []
    return found, path.read(iter([json.dumps(event).encode() for event in events]), found)


TEXT: Final = [added(0, message()), delta("output_text", 0, "a", content_index=0)]
THOUGHT: Final = [added(0, reasoning()), delta("reasoning_summary_text", 0, "a", summary_index=0)]


@pytest.mark.parametrize(
    ("first", "piece", "event"),
    [
        (TEXT, delta("output_text", 0, "é\n", content_index=0, logprobs=[]), TextDelta("é\n")),
        (TEXT, delta("output_text", 0, "b", content_index=0, sequence_number=9, obfuscation="x"), TextDelta("b")),
        (THOUGHT, delta("reasoning_summary_text", 0, "b", summary_index=0), ReasoningDelta("b")),
        ([added(0, call())], delta("function_call_arguments", 0, "{"), ToolCallDelta(0, "{")),
    ],
)
def test_a_further_piece_is_read_at_once(first: Sequence[WireEvent], piece: WireEvent, event: Event) -> None:
    assert read(begun(*first), piece, piece) == ([event, event], None)


@pytest.mark.parametrize(
    "other",
    [
        delta("output_text", 0, "", content_index=0),
        delta("output_text", 0, "b", content_index=1),
        delta("output_text", 0, "b"),
        delta("output_text", 1, "b", content_index=0),
        delta("refusal", 0, "b", content_index=0),
        delta("output_text", 0, "b", content_index=0, logprobs=[{}]),
        delta("output_text", 0, "b", content_index=0, mood="calm"),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "a"},
        {"type": "response.odd.delta", "output_index": 0, "content_index": 0, "delta": "a"},
    ],
)
def test_any_other_event_is_not(other: WireEvent) -> None:
    piece = delta("output_text", 0, "b", content_index=0)
    found, rest = read(begun(*TEXT), piece, other, piece)
    assert (found, rest) == ([TextDelta("b")], json.dumps(other).encode())


def test_a_part_whose_item_has_ended_is_not_read() -> None:
    piece = delta("output_text", 0, "b", content_index=0)
    assert read(begun(*TEXT, done(0, message("a"))), piece) == ([], json.dumps(piece).encode())


WORDS: Final = st.sampled_from(["", "a", "{", "}", "{}", '"', "é", "\u2028", "\ud83d", "\U0001f600"])
INDEXES: Final = st.integers(0, 2)
PIECES: Final = st.one_of(
    st.builds(lambda index, text, part: delta("output_text", index, text, content_index=part), INDEXES, WORDS, INDEXES),
    st.builds(lambda index, text: delta("output_text", index, text, content_index=0, logprobs=[]), INDEXES, WORDS),
    st.builds(lambda index, text: delta("refusal", index, text, content_index=0), INDEXES, WORDS),
    st.builds(lambda index, text: delta("reasoning_summary_text", index, text, summary_index=0), INDEXES, WORDS),
    st.builds(lambda index, text: delta("reasoning_text", index, text, content_index=0), INDEXES, WORDS),
    st.builds(lambda index, text: delta("function_call_arguments", index, text), INDEXES, WORDS),
    st.builds(lambda index, text: delta("function_call_arguments", index, text, odd=1), INDEXES, WORDS),
    st.builds(added, INDEXES, st.sampled_from([message(), reasoning(), call(), call(name=None)])),
    st.builds(done, INDEXES, st.sampled_from([message(), reasoning(), call()])),
)
ANSWERS: Final = st.one_of(
    st.lists(PIECES, max_size=12),
    st.permutations([*text_events(0, "a", "b", "c"), *call_events(1, "{", "}")]),
    st.builds(
        lambda texts: [*text_events(0, *texts), *call_events(1, *texts)],
        st.lists(WORDS.filter(str.isascii), max_size=8),
    ),
)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(ANSWERS)
def test_a_piece_means_the_same_on_both_paths(events: Sequence[WireEvent]) -> None:
    wire = sse(created(), *events, ended())
    assert outcome(wire, fast=True) == outcome(wire, fast=False)


def outcome(wire: bytes, *, fast: bool) -> tuple[Sequence[Event], Sequence[str], str]:
    """The events, the rules of the notices, and the error. That a half of a character was left out is told with the
    next event that is read in full."""
    with pytest.MonkeyPatch.context() as patched:
        if not fast:
            patched.setattr(DeltaFastPath, "read", lambda self, chunks, events: next(chunks, None))
        message = ""
        try:
            events: Sequence[Event] = played(wire, "openai_responses")
        except BackendError as error:
            events, message = error.events, error.message
    told = sorted([event.rule for event in events if isinstance(event, Notice)])
    return [event for event in events if not isinstance(event, Notice)], told, message
