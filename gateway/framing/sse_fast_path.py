# fast path: "CPU/chunk, us", splits a read of events that begin alike without a look at each line
# budget: "chunk of eight"
# law: tests/framing/test_sse.py
#      test_events_that_begin_alike_are_read_like_any
"""Splits whole server-sent events that begin alike and hold one line of data each.

A backend writes the same fields before the data of nearly every event. That text is learned from an event that was read
line by line; a read in which every event begins with it is split at it, and in any other read each such event is cut
behind it. Lines may end with LF or with CRLF, all of a read alike.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

BLANK: Final = b"\n\n"
_CRLF_BLANK: Final = b"\r\n\r\n"
_DATA: Final = b"data:"
_LF: Final = ord("\n")
_CR: Final = ord("\r")


class _Lead(msgspec.Struct, frozen=True):
    """The text before the data of an event, with one kind of line ends. `next` is what divides the data of two
    events."""

    text: bytes
    next: bytes
    data: slice


class SSEFastPath:
    """Holds the text before the data of the last event that was learned. No data may exceed `max_event` bytes."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._lf = _PLAIN
        # Made from the other where a backend needs it.
        self._crlf: _Lead | None = None
        self._spaceless = False

    def split(self, data: bytes) -> list[bytes] | None:
        """Returns the data of events that end with a blank line, all begin with the learned text and have one line of
        data; None for any other bytes, which must be read line by line."""
        if data.endswith(BLANK):
            lead = self._lf
        elif data.endswith(_CRLF_BLANK):
            lead = self._crlf = self._crlf or _lead(self._lf.text.replace(b"\n", b"\r\n"), _CRLF_BLANK)
        else:
            return None
        if not data.startswith(lead.text) or len(data) > self._max_event:
            return None
        events = data[lead.data].split(lead.next)
        lines = b"".join(events)
        # A line end of one byte is looked for as a number: for bytes, `in` first tries a number and takes ten times as
        # long.
        if _LF in lines or _CR in lines:
            return None
        # One space behind the colon is not part of the data.
        return None if self._spaceless and lead.text + b" " in data else events

    def fits(self, data: bytes, at: int) -> bool:
        """Returns whether the event at this position begins with the learned text. Its lines end with LF."""
        return data.startswith(self._lf.text, at)

    def pieces(self, data: bytes, at: int) -> Iterator[tuple[bytes, bool]]:
        """Yields the text between the learned ones, and whether it is the data of one event. Where it is not, it
        comes with its own learned text, and is one or several events without the last blank line.

        From this position on, `data` holds events that end with a blank line each, or nothing. The first begins with
        the learned text. All lines end with LF.
        """
        if at >= len(data):
            return
        lead, spaceless = self._lf, self._spaceless
        for piece in data[at + len(lead.text) : -len(BLANK)].split(lead.next):
            if _LF in piece or (spaceless and piece.startswith(b" ")) or len(piece) > self._max_event - len(lead.text):
                yield lead.text + piece, False
            else:
                yield piece, True

    def read(self, event: bytes) -> bytes | None:
        """Returns the data of one event, without its blank line, that ends with its only line of data, and expects the
        text before that data in the next events; None for any other event, which must be read line by line. The lines
        of `event` end with LF."""
        *others, line = event.split(b"\n")
        if not line.startswith(_DATA) or len(event) > self._max_event:
            return None
        for other in others:
            if other.startswith(b"data"):
                return None
        # One space behind the colon is not part of the data.
        at = len(event) - len(line) + len(_DATA) + line.startswith(b" ", len(_DATA))
        if not event.startswith(self._lf.text) or at != len(self._lf.text):
            self._lf, self._crlf = _lead(event[:at], BLANK), None
            self._spaceless = event[at - 1 : at] == b":"
        return event[at:]


def _lead(text: bytes, blank: bytes) -> _Lead:
    return _Lead(text, blank + text, slice(len(text), -len(blank)))


# What precedes the data where a backend writes no other fields: all streams share it.
_PLAIN: Final = _lead(b"data: ", BLANK)
