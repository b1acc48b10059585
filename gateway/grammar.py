"""Which event may follow which. Every adapter's output is checked against these two tables.

The stream table speaks of the answer as a whole: it opens once, carries content, finishes once; after the finish
only usage may still come (several wires count tokens last). The call table speaks of each tool call by its index.
Notices and extensions are legal everywhere and change nothing.
"""

from collections.abc import Iterable
from typing import Final

from gateway.events import (
    Event,
    Extension,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.notices import Notice

# Any event that has no entry in the row of the present state is illegal there.
STREAM: Final[dict[str, dict[type[Event], str]]] = {
    "IDLE": {ResponseStart: "OPEN"},
    "OPEN": {
        TextDelta: "OPEN",
        ReasoningDelta: "OPEN",
        ToolCallStart: "OPEN",
        ToolCallDelta: "OPEN",
        ToolCallEnd: "OPEN",
        UsageReport: "OPEN",
        Finish: "FINISHED",
    },
    "FINISHED": {UsageReport: "FINISHED"},
}

CALL: Final[dict[str, dict[type[Event], str]]] = {
    "NEW": {ToolCallStart: "OPEN"},
    "OPEN": {ToolCallDelta: "OPEN", ToolCallEnd: "CLOSED"},
    "CLOSED": {},
}


class GrammarError(Exception):
    """An event where the tables allow none: a bug in whoever emitted it."""


class Grammar:
    """Follows one response through the tables."""

    def __init__(self) -> None:
        self.state = "IDLE"
        self.calls: dict[int, str] = {}

    def check(self, events: Iterable[Event]) -> None:
        """Take the next events. Raises GrammarError at the first illegal one."""
        for event in events:
            if not isinstance(event, Notice | Extension):
                self._step(event)

    def close(self) -> None:
        """The response has ended. Raises GrammarError unless it finished with every call closed."""
        if self.state != "FINISHED":
            raise GrammarError(f"the response ended in state {self.state}")

    def _step(self, event: Event) -> None:
        following = STREAM[self.state].get(type(event))
        if following is None:
            raise GrammarError(f"{type(event).__name__} is not allowed in state {self.state}")
        if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
            call = self.calls.get(event.index, "NEW")
            moved = CALL[call].get(type(event))
            if moved is None:
                raise GrammarError(f"{type(event).__name__} is not allowed for call {event.index} in state {call}")
            self.calls[event.index] = moved
        if isinstance(event, Finish) and "OPEN" in self.calls.values():
            raise GrammarError("the response finished while a tool call was open")
        self.state = following
