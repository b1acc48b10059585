"""Emulated stop sequences: the response ends before the first match, for every cut of the deltas."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.capabilities.request_fields import LONGEST_SEQUENCE, MOST_SEQUENCES, check_sequences
from gateway.core.errors import InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.response.stop_sequences import StopMatcher

CALL: list[Event] = [ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0)]
NOTICE = Notice("backend", "seen", "LATE_EVENT", "x")


def shown_text(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def play(sequences: list[str], events: list[Event]) -> list[Event]:
    """One event a feed."""
    matcher = StopMatcher(sequences)
    shown = [shown for event in events for shown in matcher.feed([event])]
    if not matcher.matched:
        assert shown[-1:] == events[-1:]
    return shown


@pytest.mark.parametrize(
    ("sequences", "deltas", "text"),
    [
        (["END"], ["one END two"], "one "),
        (["END"], ["one E", "N", "D two"], "one "),
        (["END"], ["one E", "N", "X two"], "one ENX two"),
        (["END"], ["END"], ""),
        (["END"], ["one EN"], "one EN"),
        (["\n\n"], ["a\n", "b\n", "\nc"], "a\nb"),
        (["aab"], ["aa", "aab"], "aa"),
        (["b", "abc"], ["ab", "c"], ""),
        (["b", "abc"], ["ab", "x"], "a"),
        (["b", "abc"], ["ab"], "a"),
        (["x", "yx"], ["yx"], ""),
        (["", "END"], ["one END"], "one "),
        ([], ["one END"], "one END"),
    ],
)
def test_text_ends_before_the_first_match(sequences: list[str], deltas: list[str], text: str) -> None:
    events: list[Event] = [*map(TextDelta, deltas), Finish("length")]
    shown = play(sequences, events)
    assert shown_text(shown) == text
    assert sum(isinstance(event, Finish) for event in shown) == 1
    assert isinstance(shown[-1], Finish)


def test_finish_names_the_sequence_and_the_rest_is_dropped() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed([TextDelta("a END b"), TextDelta("c"), *CALL, Finish("length")]) == [
        TextDelta("a "),
        Finish("stop", "stop_sequence:END", "END"),
    ]
    assert matcher.matched
    assert matcher.feed([TextDelta("d"), Finish("stop")]) == []


def test_of_two_matches_at_one_place_the_shorter_is_named_however_it_was_cut() -> None:
    for deltas in (["abc"], ["ab", "c"], ["a", "b", "c"]):
        assert play(["abc", "ab"], [*map(TextDelta, deltas)])[-1] == Finish("stop", "stop_sequence:ab", "ab")


def test_nothing_is_held_that_cannot_become_a_match() -> None:
    matcher = StopMatcher(["END", "STOP"])
    assert matcher.feed([TextDelta("hello EX")]) == [TextDelta("hello EX")]
    assert matcher.feed([TextDelta("hello ST")]) == [TextDelta("hello ")]
    assert matcher.feed([TextDelta("O")]) == []
    assert matcher.feed([TextDelta("E")]) == [TextDelta("STO")]


@pytest.mark.parametrize(
    "event",
    [ResponseStart(), ReasoningDelta("END"), *CALL, UsageReport(1, 2, 3), NOTICE],
    ids=lambda e: type(e).__name__,
)
def test_other_events_pass_untouched_and_at_once(event: Event) -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed([TextDelta("E"), event]) == [event]


def test_text_around_a_tool_call_is_one_text() -> None:
    events: list[Event] = [TextDelta("one EN"), *CALL, TextDelta("D two")]
    assert play(["END"], events) == [TextDelta("one "), *CALL, Finish("stop", "stop_sequence:END", "END")]


def test_an_open_call_may_end_after_the_text_has_stopped() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed([ToolCallStart(0, "a", "f"), ToolCallDelta(0, '{"n":'), TextDelta("END")]) == [
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, '{"n":'),
    ]
    assert not matcher.matched
    late: list[Event] = [
        TextDelta("x"),
        ReasoningDelta("y"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(1, "{}"),
        NOTICE,
    ]
    assert matcher.feed(late) == [NOTICE]
    assert matcher.feed([ToolCallDelta(0, "1}"), ToolCallEnd(1), ToolCallEnd(0), TextDelta("z")]) == [
        ToolCallDelta(0, "1}"),
        ToolCallEnd(0),
        Finish("stop", "stop_sequence:END", "END"),
    ]
    assert matcher.matched


TEXTS = st.text("abEN ", max_size=40)
SEQUENCES = st.lists(st.text("abEN", min_size=1, max_size=5), max_size=4)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(TEXTS)
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=12))})
    return text, [text[start:stop] for start, stop in pairwise(cuts)]


@given(cut_texts(), SEQUENCES)
def test_law_any_cut_gives_the_joined_text_up_to_the_first_match(
    case: tuple[str, list[str]], sequences: list[str]
) -> None:
    text, deltas = case
    found = [at for sequence in sequences if (at := text.find(sequence)) >= 0]
    shown = play(sequences, [ResponseStart(), *map(TextDelta, deltas), Finish("stop")])
    assert shown_text(shown) == text[: min(found, default=len(text))]
    grammar = Grammar()
    grammar.check(shown)
    grammar.close()


@given(cut_texts(), SEQUENCES)
def test_law_what_is_held_may_still_become_a_match(case: tuple[str, list[str]], sequences: list[str]) -> None:
    matcher = StopMatcher(sequences)
    seen = shown = ""
    for delta in case[1]:
        seen += delta
        shown += shown_text(matcher.feed([TextDelta(delta)]))
        if matcher.matched:
            return
        held = seen.removeprefix(shown)
        assert not held or any(sequence.startswith(held) for sequence in sequences)
        assert len(held) < max(map(len, sequences), default=1)


def test_a_hostile_sequence_costs_no_more_than_its_text() -> None:
    sequence = "a" * 20_000 + "b"
    matcher = StopMatcher([sequence])
    delta: list[Event] = [TextDelta("a")]
    for _ in range(60_000):
        matcher.feed(delta)
    assert not matcher.matched
    assert matcher.feed([TextDelta("b")])[-1] == Finish("stop", f"stop_sequence:{sequence}", sequence)


def test_as_many_and_as_long_sequences_as_can_be_looked_for() -> None:
    check_sequences(["x" * LONGEST_SEQUENCE] * MOST_SEQUENCES, CANONICAL_PATHS)
    for sequences in (["x"] * (MOST_SEQUENCES + 1), ["x" * (LONGEST_SEQUENCE + 1)]):
        with pytest.raises(InvalidRequest) as caught:
            check_sequences(sequences, CANONICAL_PATHS)
        assert caught.value.param == "stop"
