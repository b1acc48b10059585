"""Estimates the token counts of a response when the backend reports none (`gateway.core.tokens`)."""

from collections.abc import Iterable, Iterator
from typing import Final

from gateway.core.events import Event, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart, UsageReport
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_text

_ESTIMATED: Final = Notice(
    "backend",
    "added",
    "USAGE_ESTIMATED",
    "the backend reported no token counts; they are estimated",
    level="debug",
)


def answer_tokens(events: Iterable[Event]) -> int:
    """Returns the estimated tokens of the content of these events, which follow one another."""
    return estimate_text("".join(_texts(events)))


def estimate_usage(prompt: int, completion: int) -> tuple[Notice, UsageReport]:
    """Returns the notice of estimated counts, and the counts, in tokens."""
    return _ESTIMATED, UsageReport(prompt, completion, prompt + completion, estimated=True)


def _texts(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if type(event) is TextDelta or type(event) is ReasoningDelta:
            yield event.text
        elif type(event) is ToolCallDelta:
            yield event.arguments
        elif type(event) is ToolCallStart:
            yield event.name
