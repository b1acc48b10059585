"""Events in, what they amount to out: one comparable answer, however finely the deltas were cut."""

from collections.abc import Iterable

import msgspec

from gateway.events import (
    Event,
    Extension,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from gateway.notices import Notice
from gateway.types import ToolCall


class Answer(msgspec.Struct, frozen=True):
    """What a client is told in the end. `finish` is None as long as the answer is incomplete."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    usage: UsageReport | None = None


def fold(events: Iterable[Event]) -> Answer:
    """The answer that a stream of events adds up to. Calls stand in the order in which they started."""
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
    return Answer("".join(text), "".join(reasoning), calls, finish, usage)


def join(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one kind made into one."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            joined[-1] = ReasoningDelta(last.text + event.text)
        elif isinstance(event, ToolCallDelta) and isinstance(last, ToolCallDelta) and event.index == last.index:
            joined[-1] = ToolCallDelta(event.index, last.arguments + event.arguments)
        else:
            joined.append(event)
    return joined


def content(events: Iterable[Event]) -> list[Event]:
    """The joined events without those that only accompany an answer: usage, notices, extensions."""
    return join(event for event in events if not isinstance(event, UsageReport | Notice | Extension))
