# fast path: "CPU/chunk, us", splits a read of events that begin alike without a look at each line
# budget: "chunk of eight"
# law: tests/framing/test_sse.py::test_events_that_begin_alike_are_read_like_any
"""Splits whole server-sent events that begin alike and hold one line of data each.

A backend writes the same fields before the data of nearly every event. That text is learned from an event that was read
line by line; a read in which every event begins with it is split at it, and in any other read each such event is cut
behind it. Lines may end with LF or with CRLF, all of a read alike.
"""

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
        self._lf, self._crlf = _PLAIN
        self._spaceless = False

    def split(self, data: bytes) -> list[bytes] | None:
        """Returns the data of events that end with a blank line, all begin with the learned text and have one line of
        data; None for any other bytes, which must be read line by line."""
        lead = self._lf if data.endswith(BLANK) else self._crlf
        if not data.startswith(lead.text) or len(data) > self._max_event:
            return None
        if lead is self._crlf and not data.endswith(_CRLF_BLANK):
            return None
        events = data[lead.data].split(lead.next)
        lines = b"".join(events)
        # A line end of one byte is looked for as a number: for bytes, `in` first tries a number and takes ten times as
        # long.
        if _LF in lines or _CR in lines:
            return None
        # One space behind the colon is not part of the data.
        return None if self._spaceless and lead.text + b" " in data else events

    def read(self, event: bytes) -> bytes | None:
        """Returns the data of one event, without its blank line, that begins with the learned text and has one line of
        data; None for any other, which must be read line by line. The lines of `event` end with LF."""
        lead = self._lf.text
        if not event.startswith(lead) or len(event) > self._max_event:
            return None
        data = event[len(lead) :]
        return None if _LF in data or (self._spaceless and data.startswith(b" ")) else data

    def learn(self, event: bytes) -> None:
        """Expects the text before the data of this event in the next ones, if that data is one line. The lines of
        `event` end with LF.

        Other fields may precede the data line; none may follow it.
        """
        *others, line = event.split(b"\n")
        if not line.startswith(_DATA) or any(other.startswith(b"data") for other in others):
            return
        colon = _DATA + b" " if line[len(_DATA) :].startswith(b" ") else _DATA
        text = b"\n".join((*others, colon))
        if text != self._lf.text:
            self._lf, self._crlf = _leads(text)
            self._spaceless = text.endswith(b":")


def _leads(text: bytes) -> tuple[_Lead, _Lead]:
    """Returns the text with lines that end with LF, and with CRLF."""
    return _lead(text, BLANK), _lead(text.replace(b"\n", b"\r\n"), _CRLF_BLANK)


def _lead(text: bytes, blank: bytes) -> _Lead:
    return _Lead(text, blank + text, slice(len(text), -len(blank)))


# What precedes the data where a backend writes no other fields: all streams share it.
_PLAIN: Final = _leads(b"data: ")
