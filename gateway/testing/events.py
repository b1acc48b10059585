"""Folds events into one response that is comparable regardless of how the deltas were cut."""

from collections.abc import Iterable

import msgspec

from gateway.core.answer import read_answer
from gateway.core.conversation import ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from gateway.core.notices import Notice


class FoldedAnswer(msgspec.Struct, frozen=True):
    """The response that a client receives. `finish` is None as long as the response is incomplete."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    usage: UsageReport | None = None


def fold(events: Iterable[Event]) -> FoldedAnswer:
    """Returns the response that the events add up to. Calls stand in the order in which they started."""
    answer = read_answer(events)
    calls = tuple(call.block for call in answer.calls)
    return FoldedAnswer(answer.text, answer.reasoning, calls, answer.finish, answer.usage)


def join(events: Iterable[Event]) -> list[Event]:
    """Returns the events with neighbouring deltas of one kind joined."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            joined[-1] = ReasoningDelta(last.text + event.text, event.field)
        elif isinstance(event, ToolCallDelta) and isinstance(last, ToolCallDelta) and event.index == last.index:
            joined[-1] = ToolCallDelta(event.index, last.arguments + event.arguments)
        else:
            joined.append(event)
    return joined


def content(events: Iterable[Event]) -> list[Event]:
    """Returns the joined events without those that only accompany a response: usage, notices, passthrough fields."""
    return join(event for event in events if not isinstance(event, UsageReport | Notice | PassthroughFields))
