"""Defines which event may follow which, as two tables that check the output of every adapter.

The stream table covers the response as a whole: it starts once, carries content and finishes once; after the finish
only usage may follow (several wires count tokens last). The call table covers each tool call by its index. Notices and
passthrough fields are legal everywhere and change no state.
"""

from collections.abc import Iterable
from typing import Final

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

# Any event without an entry in the row of the present state is illegal in it.
STREAM: Final[dict[str, dict[type[Event], str]]] = {
    "IDLE": {ResponseStart: "OPEN"},
    "OPEN": {
        TextDelta: "OPEN",
        ReasoningDelta: "OPEN",
        ReasoningEnd: "OPEN",
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
    """An event that the tables forbid: a bug in the code that emitted it."""


class Grammar:
    """Checks one response against the tables."""

    def __init__(self) -> None:
        self.state = "IDLE"
        self.calls: dict[int, str] = {}

    def check(self, events: Iterable[Event]) -> None:
        """Checks the next events. Raises GrammarError at the first illegal one."""
        for event in events:
            if not isinstance(event, Notice | PassthroughFields):
                self._step(event)

    def close(self) -> None:
        """Checks the end of the response. Raises GrammarError unless it finished with every call closed."""
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
