"""The one fold of events: what an answer holds depends on the events alone, and loses none of them."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.answer import (
    Answer,
    AnswerCall,
    AnswerPart,
    AnswerReader,
    AnswerReasoning,
    AnswerText,
    merge_usage,
    read_answer,
)
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
from gateway.core.notices import Notice
from gateway.testing.strategies import answers

NOTICE = Notice("backend", "seen", "LATE_EVENT", "something")
FIELDS = PassthroughFields("delta", {"a": 1})
SIGNED = ReasoningEnd({"extra_content": {"p": {"signature": "s"}}})
ONE, TWO = ToolCallStart(7, "one", "f"), ToolCallStart(2, "two", "g", extra={"x": 1})


def test_what_was_said_stands_in_order() -> None:
    answer = read_answer(
        [
            ResponseStart("id", "m"),
            ReasoningDelta("h"),
            ReasoningDelta("m"),
            SIGNED,
            TextDelta("a"),
            NOTICE,
            UsageReport(1),
            TextDelta("b"),
            FIELDS,
            TextDelta("c"),
            ONE,
            ToolCallDelta(7, "{"),
            ToolCallDelta(7, "}"),
            ToolCallEnd(7, {"late": 1}),
            Finish("tool_calls", "raw"),
            UsageReport(None, 2),
        ]
    )
    call = AnswerCall(ONE, ["{", "}"], {"late": 1})
    said: list[AnswerPart] = [AnswerReasoning(["h", "m"]), SIGNED, AnswerText(["a", "b"]), FIELDS, AnswerText(["c"])]
    assert answer == Answer([*said, call], [(6, call)], Finish("tool_calls", "raw"), UsageReport(1, 2), [NOTICE])
    assert (answer.text, answer.reasoning, answer.calls, call.arguments) == ("abc", "hm", (call,), "{}")


def test_a_call_stands_where_it_began_and_is_complete_where_it_ended() -> None:
    answer = read_answer(
        [ONE, TextDelta("a"), TWO, TextDelta("b"), ToolCallEnd(2), TextDelta("c"), ToolCallEnd(7), TextDelta("d")]
    )
    one, two = AnswerCall(ONE, []), AnswerCall(TWO, [])
    a, b, c, d = (AnswerText([piece]) for piece in "abcd")
    assert answer.parts == [one, a, two, b, c, d]
    assert [*answer.completed()] == [a, b, two, c, one, d]
    assert answer.calls == (one, two)


def test_calls_that_end_together_are_complete_in_that_order() -> None:
    answer = read_answer([ONE, TWO, ToolCallEnd(2), ToolCallEnd(7)])
    assert [*answer.completed()] == [AnswerCall(TWO, []), AnswerCall(ONE, [])]


def test_an_answer_that_broke_off_holds_what_came() -> None:
    answer = read_answer([ResponseStart(), TextDelta("a"), ONE, ToolCallDelta(7, "{")])
    call = AnswerCall(ONE, ["{"])
    assert answer == Answer([AnswerText(["a"]), call], [], None, None, [])
    assert answer.calls == (call,) and [*answer.completed()] == [AnswerText(["a"])]


def test_nothing_adds_up_to_nothing() -> None:
    assert read_answer([]) == read_answer([ResponseStart()]) == Answer([], [], None, None, [])


def test_reasoning_of_another_field_is_another_part() -> None:
    answer = read_answer([ReasoningDelta("a"), ReasoningDelta("b", "reasoning")])
    assert answer.parts == [AnswerReasoning(["a"]), AnswerReasoning(["b"], "reasoning")]


@given(answers(), st.lists(st.integers(0, 40), max_size=4).map(sorted))
def test_an_answer_does_not_depend_on_how_it_is_fed(events: Sequence[Event], places: Sequence[int]) -> None:
    reader = AnswerReader()
    for start, end in pairwise([0, *places, len(events)]):
        reader.feed(events[start:end])
    assert reader.answer == read_answer(events)


@given(answers())
def test_nothing_is_lost_and_nothing_is_invented(events: Sequence[Event]) -> None:
    answer = read_answer(events)
    assert answer.text == "".join(event.text for event in events if isinstance(event, TextDelta))
    assert answer.reasoning == "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert [call.start for call in answer.calls] == [event for event in events if isinstance(event, ToolCallStart)]
    for call in answer.calls:
        pieces = [event for event in events if isinstance(event, ToolCallDelta) and event.index == call.start.index]
        assert call.pieces == [piece.arguments for piece in pieces]
    ended = [event.index for event in events if isinstance(event, ToolCallEnd)]
    assert [call.start.index for _, call in answer.ends] == ended
    assert answer.notices == [event for event in events if isinstance(event, Notice)]
    assert answer.finish in events
    reports = [event for event in events if isinstance(event, UsageReport)]
    merged = None
    for report in reports:
        merged = merge_usage(merged, report)
    assert answer.usage == merged


@given(answers())
def test_each_piece_is_complete_once(events: Sequence[Event]) -> None:
    """The complete parts say the pieces of text and the ends of calls in the order of their events."""
    said: list[object] = []
    for part in read_answer(events).completed():
        if isinstance(part, AnswerText | AnswerReasoning):
            said += part.pieces
        elif isinstance(part, AnswerCall):
            said.append(part.start.index)
    told = [event for event in events if isinstance(event, TextDelta | ReasoningDelta | ToolCallEnd)]
    assert said == [event.index if isinstance(event, ToolCallEnd) else event.text for event in told]
