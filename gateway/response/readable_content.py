"""Removes what a client cannot read or has declined: reasoning is dropped, and a call fails the response."""

from typing import Final

from gateway.core.conversation import ReadableContent
from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, ReasoningDelta, ReasoningEnd, ToolCallStart
from gateway.core.notices import Notice

DROPPED: Final = Notice(
    "backend", "dropped", "REASONING_NOT_SHOWN", "the client gets no reasoning, and the model's was left out"
)
DECLINED: Final = Notice(
    "backend",
    "dropped",
    "REASONING_NOT_SHOWN",
    "the client has declined reasoning, and the model's was left out",
    level="debug",
)


class ReadableContentFilter:
    """Filters the events of one response. `reads` is what the client reads beside text; `declined`: its API has
    reasoning, which it does not want."""

    def __init__(self, reads: frozenset[ReadableContent], *, declined: bool) -> None:
        self._reads = reads
        self._told = DECLINED if declined else DROPPED
        self._noticed = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that the client reads, with one notice of what is dropped.

        Raises InvalidToolCall for a call that the client cannot read: the rest of the response would look complete.
        """
        shown: list[Event] = []
        for event in events:
            kind = type(event)
            if kind is ToolCallStart and "calls" not in self._reads:
                error = InvalidToolCall("The model called a tool, which a client of this API cannot read.")
                error.keep(shown)
                raise error
            if (kind is ReasoningDelta or kind is ReasoningEnd) and not self._is_read(kind):
                shown += self._notice()
            else:
                shown.append(event)
        return shown

    def _is_read(self, kind: type[Event]) -> bool:
        return "reasoning" in self._reads or (kind is ReasoningEnd and "state" in self._reads)

    def _notice(self) -> tuple[Notice, ...]:
        if self._noticed:
            return ()
        self._noticed = True
        return (self._told,)
