"""Decodes server-sent events into their data (WHATWG HTML, section 9.2.6, without reconnection).

Lines end at LF, CR or CRLF only. `str.splitlines()` would also cut at U+2028 and U+0085, which stand unescaped inside
JSON payloads.
"""

from typing import Final

from gateway.core.errors import BackendProtocolError

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b"\n\n"
_DATA: Final = b"data:"
_FIELD: Final = len(b"data: ")
_END: Final = len(_BLANK)
_CR: Final = ord("\r")


class SSEDecoder:
    """Returns the data of each event as bytes. The event's name and id are ignored.

    A blank line dispatches its event. `tail()` returns an event without its blank line. Data may have `max_event` bytes
    and a line six more (its field name); one byte more raises BackendProtocolError `upstream_event_too_large`. The
    output, errors included, does not depend on how the bytes are cut: whole events before an error are returned first,
    the error is stored as `fault`, and every later call raises it.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._longest_line = max_event + _FIELD
        self._partial = bytearray()  # the unfinished line; a bytearray grows in linear time, bytes would not
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False
        self._between = False  # whether the next byte begins an event
        self.fault: BackendProtocolError | None = None
        self._learn(b"data: ")

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the data of every event completed by these bytes, in order. Raises BackendProtocolError."""
        # Nearly every read holds whole events that begin alike.
        if self._between and data.endswith(_BLANK) and (simple := self._simple(data)) is not None:
            return simple
        if self.fault is not None:
            raise self.fault
        events: list[bytes] = []
        try:
            self._split(data, events)
        except BackendProtocolError as error:
            if not events:
                raise
            self.fault = error
            self._between = False
        return events

    def _split(self, data: bytes, events: list[bytes]) -> None:
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if _CR in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not self._between:
            first, blank, data = data.partition(_BLANK)
            self._lines(first + blank, events)
        whole = data.rfind(_BLANK) + _END if _BLANK in data else 0
        if whole:
            simple = self._simple(data[:whole])
            if simple is None:
                self._lines(data[:whole], events)
                if lead := _lead(data):
                    self._learn(lead)
            else:
                events += simple
        if whole < len(data):
            self._lines(data[whole:], events)
        self._between = self._started and not (self._partial or self._data or self._after_cr)

    def _simple(self, data: bytes) -> list[bytes] | None:
        """Returns the data of events that all have the learned beginning and one line of data; else None."""
        lead = self._lead
        if not data.startswith(lead) or len(data) > self._max_event or _CR in data:
            return None
        events = data[self._size_of_lead : -_END].split(self._next)
        if b"\n" in b"".join(events):
            return None
        # One space behind the colon is not part of the data.
        return None if self._spaceless and lead + b" " in data else events

    def _learn(self, lead: bytes) -> None:
        """Expects this text before the data of the next events."""
        self._lead = lead
        self._size_of_lead = len(lead)
        self._next = _BLANK + lead
        self._spaceless = lead.endswith(b":")

    def tail(self) -> bytes | None:
        """Returns the data of an event without its blank line; None when there is none. Raises BackendProtocolError."""
        if self.fault is not None:
            raise self.fault
        events: list[bytes] = []
        self._line(bytes(self._partial), events)
        self._line(b"", events)
        self._partial.clear()
        return events[0] if events else None

    def _lines(self, data: bytes, events: list[bytes]) -> None:
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._partial:
            self._partial += lines[0]
            lines[0] = bytes(self._partial)
            self._partial.clear()
        for line in lines:
            self._line(line, events)
        self._partial += rest
        self._bound(len(self._partial))

    def _line(self, line: bytes, events: list[bytes]) -> None:
        self._bound(len(line))
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
                self._size = 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(self._data[-1]) + 1
            self._bound(self._size - 1 + _FIELD)

    def _bound(self, size: int) -> None:
        if size > self._longest_line:
            raise BackendProtocolError(
                f"The backend sent an event larger than {self._max_event} bytes.", code="upstream_event_too_large"
            )


def _lead(data: bytes) -> bytes:
    """Returns the text before the data of the first event, if that data is one line; else nothing.

    Other fields may precede the data line; none may follow it.
    """
    *others, line = data.partition(_BLANK)[0].split(b"\n")
    if not line.startswith(_DATA) or any(other.startswith(b"data") for other in others):
        return b""
    colon = _DATA + b" " if line[len(_DATA) :].startswith(b" ") else _DATA
    return b"\n".join((*others, colon))
