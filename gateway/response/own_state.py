"""Removes from an answer the state that only the gateway asked for, to store it."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import ALL_CONTENT, Conversation
from gateway.core.events import Event, Finish, PassthroughFields, ReasoningEnd
from gateway.core.state_rule import StateRule
from gateway.response.readable_content import ReadableContentFilter

_STATE: Final = frozenset({PassthroughFields, ReasoningEnd, Finish})


class OwnStateFilter:
    """Filters the events of one answer. `conversation` is the client's; `passes`: it speaks the backend's dialect, and
    gets every field and state as the backend sent it.

    A client of another dialect keeps one text of reasoning and one state of it: the states of several pieces would not
    fit their text, so that it gets none of them.
    """

    def __init__(self, conversation: Conversation, rule: StateRule, *, passes: bool) -> None:
        self._holds = rule.reasoning == "signed" and not passes
        self._passes = passes
        self._held: list[ReasoningEnd] = []
        self._readable = (
            None
            if passes or "reasoning" in conversation.reads
            else ReadableContentFilter(conversation.reads | (ALL_CONTENT - {"reasoning"}))
        )

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events for the client."""
        if not self._passes and not _STATE.isdisjoint(map(type, events)):
            events = [shown for event in events for shown in self._shown(event)]
        return events if self._readable is None else self._readable.feed([*events])

    def _shown(self, event: Event) -> Sequence[Event]:
        if isinstance(event, PassthroughFields):
            return ()
        if isinstance(event, ReasoningEnd) and self._holds:
            self._held.append(event)
            return ()
        if isinstance(event, Finish):
            return (*(self._held if len(self._held) == 1 else ()), event)
        return (event,)
