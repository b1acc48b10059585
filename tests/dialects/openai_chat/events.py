"""Strategies for the events of an answer, in every order that the grammar allows."""

from hypothesis import strategies as st

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
from gateway.core.notices import Notice

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ["\u2028", "\u2029", "\x85", "\r\n", "data: [DONE]\n\n", '"', "\\", "\x00", "\U0001f600"]
)
COUNTS = st.none() | st.integers(0, 10**6)


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    """One complete answer: interleaved calls, whose indexes are in no order, between pieces of text."""
    events: list[Event] = [ResponseStart()]
    fresh = draw(st.permutations(range(5)))
    opened: list[int] = []
    for step in draw(st.lists(st.sampled_from("tttrsdddecn"), max_size=12)):
        match step:
            case "t":
                events.append(TextDelta(draw(TEXTS)))
            case "r":
                events.append(ReasoningDelta(draw(TEXTS)))
            case "s" if fresh:
                index = fresh.pop()
                opened.append(index)
                events.append(ToolCallStart(index, f"call{index}", draw(st.sampled_from("fg"))))
            case "d" if opened:
                events.append(ToolCallDelta(draw(st.sampled_from(opened)), draw(TEXTS)))
            case "e" if opened:
                events.append(ToolCallEnd(opened.pop()))
            case "c":
                events.append(UsageReport(draw(COUNTS), draw(COUNTS), draw(COUNTS)))
            case _:
                events.append(Notice("backend", "seen", "RULE", "seen"))
    events += [ToolCallEnd(index) for index in opened]
    events.append(Finish(draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))))
    if draw(st.booleans()):
        events.append(UsageReport(draw(COUNTS), draw(COUNTS), draw(COUNTS)))
    return events
