from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.testing.events import FoldedAnswer, content, fold, join

NOTICE = Notice("backend", "seen", "LATE_EVENT", "something")
EVENTS: list[Event] = [
    ResponseStart(),
    ReasoningDelta("h"),
    ReasoningDelta("m"),
    TextDelta("a"),
    TextDelta("b"),
    ToolCallStart(3, "k1", "f"),
    ToolCallStart(1, "k2", "g", extra={"x": 1}),
    ToolCallDelta(3, "{"),
    ToolCallDelta(3, "}"),
    ToolCallDelta(1, "[]"),
    ToolCallEnd(3),
    ToolCallEnd(1),
    NOTICE,
    PassthroughFields("delta", {}),
    UsageReport(1, 2, 3),
    Finish("tool_calls", "raw"),
]


def test_a_stream_adds_up_to_an_answer() -> None:
    calls = (ToolCall("k1", "f", "{}"), ToolCall("k2", "g", "[]", {"x": 1}))
    assert fold(EVENTS) == FoldedAnswer("ab", "hm", calls, Finish("tool_calls", "raw"), UsageReport(1, 2, 3))


def test_nothing_adds_up_to_an_incomplete_answer() -> None:
    assert fold([]) == FoldedAnswer()


def test_neighbouring_deltas_are_joined() -> None:
    joined = join(EVENTS)
    assert joined[1:3] == [ReasoningDelta("hm"), TextDelta("ab")]
    assert joined[5:7] == [ToolCallDelta(3, "{}"), ToolCallDelta(1, "[]")]
    assert len(joined) == len(EVENTS) - 3


def test_deltas_with_something_between_them_stay_apart() -> None:
    events: list[Event] = [TextDelta("a"), NOTICE, TextDelta("b"), ReasoningDelta("c"), TextDelta("d")]
    assert join(events) == events


def test_content_is_what_a_client_cannot_do_without() -> None:
    assert not any(isinstance(event, Notice | PassthroughFields | UsageReport) for event in content(EVENTS))
    assert content([TextDelta("a"), NOTICE, TextDelta("b")]) == [TextDelta("ab")]


@given(st.lists(st.sampled_from(EVENTS[:5]), max_size=12))
def test_joining_changes_no_answer_and_is_done_once(events: list[Event]) -> None:
    assert fold(join(events)) == fold(events)
    assert join(join(events)) == join(events)
