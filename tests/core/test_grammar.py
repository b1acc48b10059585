import itertools
from typing import get_args

import pytest

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
    UsageReport,
)
from gateway.core.grammar import CALL, STREAM, Grammar, GrammarError
from gateway.core.notices import Notice

START = ResponseStart()
FINISH = Finish("stop")
NOTICE = Notice("backend", "seen", "LATE_EVENT", "something was seen")
SAMPLES: tuple[Event, ...] = (
    START,
    TextDelta("a"),
    ReasoningDelta("a"),
    ReasoningEnd({"extra_content": {}}),
    ToolCallStart(0, "k", "f"),
    ToolCallDelta(0, "{}"),
    ToolCallEnd(0),
    UsageReport(),
    PassthroughFields("delta", {}),
    FINISH,
    NOTICE,
)
# A way into each state of the two tables.
INTO_STREAM: dict[str, list[Event]] = {"IDLE": [], "OPEN": [START], "FINISHED": [START, FINISH]}
INTO_CALL: dict[str, list[Event]] = {
    "NEW": [START],
    "OPEN": [START, ToolCallStart(0, "k", "f")],
    "CLOSED": [START, ToolCallStart(0, "k", "f"), ToolCallEnd(0)],
}
ANYWHERE = (Notice, PassthroughFields)
OF_CALLS = (ToolCallStart, ToolCallDelta, ToolCallEnd)


def test_the_samples_are_all_events() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(Event))


def test_the_tables_name_only_states_they_define() -> None:
    for table in (STREAM, CALL):
        assert {state for row in table.values() for state in row.values()} <= set(table)
    assert set(INTO_STREAM) == set(STREAM) and set(INTO_CALL) == set(CALL)


@pytest.mark.parametrize("state", STREAM)
@pytest.mark.parametrize("event", [sample for sample in SAMPLES if not isinstance(sample, OF_CALLS)])
def test_the_stream_table_is_the_law(state: str, event: Event) -> None:
    grammar = _after(INTO_STREAM[state])
    assert grammar.state == state
    if isinstance(event, ANYWHERE):
        grammar.check([event])
        assert grammar.state == state
    elif type(event) in STREAM[state]:
        grammar.check([event])
        assert grammar.state == STREAM[state][type(event)]
    else:
        with pytest.raises(GrammarError, match=f"{type(event).__name__} is not allowed in state {state}"):
            grammar.check([event])


@pytest.mark.parametrize("state", CALL)
@pytest.mark.parametrize("event", [sample for sample in SAMPLES if isinstance(sample, OF_CALLS)])
def test_the_call_table_is_the_law(state: str, event: ToolCallStart | ToolCallDelta | ToolCallEnd) -> None:
    grammar = _after(INTO_CALL[state])
    if type(event) in CALL[state]:
        grammar.check([event])
        assert grammar.calls[0] == CALL[state][type(event)]
    else:
        with pytest.raises(GrammarError, match=f"{type(event).__name__} is not allowed for call 0 in state {state}"):
            grammar.check([event])


@pytest.mark.parametrize("state", ["IDLE", "FINISHED"])
@pytest.mark.parametrize("event", [sample for sample in SAMPLES if isinstance(sample, OF_CALLS)])
def test_calls_live_only_inside_the_answer(state: str, event: Event) -> None:
    with pytest.raises(GrammarError, match=f"in state {state}"):
        _after(INTO_STREAM[state]).check([event])


def test_calls_are_told_apart_by_index() -> None:
    interleaved: list[Event] = [
        START,
        ToolCallStart(7, "a", "f"),
        ToolCallStart(3, "b", "g"),
        ToolCallDelta(7, "{"),
        ToolCallDelta(3, "{}"),
        ToolCallEnd(3),
        ToolCallDelta(7, "}"),
        ToolCallEnd(7),
        FINISH,
    ]
    _after(interleaved).close()


def test_an_answer_cannot_finish_with_an_open_call() -> None:
    with pytest.raises(GrammarError, match="while a tool call was open"):
        _after([START, ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "f"), ToolCallEnd(0), FINISH])


@pytest.mark.parametrize("events", [[], [START], [START, TextDelta("a")], [NOTICE]])
def test_an_answer_without_finish_does_not_close(events: list[Event]) -> None:
    with pytest.raises(GrammarError, match="ended in state"):
        _after(events).close()


def test_cutting_the_events_into_lists_changes_nothing() -> None:
    opened: list[Event] = [START, NOTICE, TextDelta("a"), PassthroughFields("choice", {}), UsageReport()]
    events = [*opened, FINISH, UsageReport(), NOTICE]
    for first, second in itertools.combinations(range(len(events)), 2):
        grammar = Grammar()
        for piece in (events[:first], events[first:second], events[second:]):
            grammar.check(piece)
        grammar.close()


def _after(events: list[Event]) -> Grammar:
    grammar = Grammar()
    grammar.check(events)
    return grammar
