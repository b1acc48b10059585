# fast path: "CPU/chunk, us", splits a read of events that begin alike without a look at each line
# budget: "chunk of eight"
# law: tests/framing/test_sse.py::test_events_that_begin_alike_are_read_like_any
"""Splits whole server-sent events that begin alike and hold one line of data each.

A backend writes the same fields before the data of every event. That text is learned from an event that was read line
by line; a read in which every event begins with it is split at it.
"""

from typing import Final

BLANK: Final = b"\n\n"
_END: Final = len(BLANK)
_DATA: Final = b"data:"
_CR: Final = ord("\r")


class SSEFastPath:
    """Holds the text before the data of the last event that was learned. No data may exceed `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._expect(b"data: ")

    def split(self, data: bytes) -> list[bytes] | None:
        """Returns the data of events that end with a blank line, all begin with the learned text and have one line of
        data; None for any other bytes, which must be read line by line."""
        lead = self._lead
        if not data.startswith(lead) or len(data) > self._max_event or _CR in data:
            return None
        events = data[self._size_of_lead : -_END].split(self._next)
        if b"\n" in b"".join(events):
            return None
        # One space behind the colon is not part of the data.
        return None if self._spaceless and lead + b" " in data else events

    def learn(self, data: bytes) -> None:
        """Expects the text before the data of this first event in the next ones, if that data is one line.

        Other fields may precede the data line; none may follow it.
        """
        *others, line = data.partition(BLANK)[0].split(b"\n")
        if not line.startswith(_DATA) or any(other.startswith(b"data") for other in others):
            return
        colon = _DATA + b" " if line[len(_DATA) :].startswith(b" ") else _DATA
        self._expect(b"\n".join((*others, colon)))

    def _expect(self, lead: bytes) -> None:
        self._lead = lead
        self._size_of_lead = len(lead)
        self._next = BLANK + lead
        self._spaceless = lead.endswith(b":")
