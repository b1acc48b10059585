"""Folds events into one response that is comparable regardless of how the deltas were cut."""

from collections.abc import Iterable

import msgspec

from gateway.core.conversation import ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
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
    """Return the response that the events add up to. Calls stand in the order in which they started."""
    text, reasoning = [], []
    starts: dict[int, ToolCallStart] = {}
    arguments: dict[int, list[str]] = {}
    finish: Finish | None = None
    usage: UsageReport | None = None
    for event in events:
        match event:
            case TextDelta():
                text.append(event.text)
            case ReasoningDelta():
                reasoning.append(event.text)
            case ToolCallStart():
                starts[event.index] = event
                arguments[event.index] = []
            case ToolCallDelta():
                arguments[event.index].append(event.arguments)
            case UsageReport():
                usage = event
            case Finish():
                finish = event
            case _:
                pass
    calls = tuple(
        ToolCall(start.id, start.name, "".join(arguments[index]), start.extra) for index, start in starts.items()
    )
    return FoldedAnswer("".join(text), "".join(reasoning), calls, finish, usage)


def join(events: Iterable[Event]) -> list[Event]:
    """Return the events with neighbouring deltas of one kind joined."""
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
    """Return the joined events without those that only accompany a response: usage, notices, passthrough fields."""
    return join(event for event in events if not isinstance(event, UsageReport | Notice | PassthroughFields))
