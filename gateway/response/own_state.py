"""Removes from an answer the state that only the gateway asked for, to store it."""

from collections.abc import Sequence

from gateway.core.conversation import ALL_CONTENT, Conversation
from gateway.core.events import Event, PassthroughFields
from gateway.response.readable_content import ReadableContentFilter


class OwnStateFilter:
    """Filters the events of one answer. `conversation` is the client's; `passes`: it speaks the backend's dialect, and
    gets every field and state as the backend sent it.
    """

    def __init__(self, conversation: Conversation, *, passes: bool) -> None:
        self._passes = passes
        self._readable = (
            None
            if passes or "reasoning" in conversation.reads
            else ReadableContentFilter(conversation.reads | (ALL_CONTENT - {"reasoning"}))
        )

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events for the client."""
        if not self._passes and PassthroughFields in map(type, events):
            events = [event for event in events if type(event) is not PassthroughFields]
        return events if self._readable is None else self._readable.feed([*events])
