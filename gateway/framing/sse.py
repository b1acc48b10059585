"""Decodes server-sent events into their data (WHATWG HTML, section 9.2.6, without reconnection).

Lines end at LF, CR or CRLF only. `str.splitlines()` would also cut at U+2028 and U+0085, which stand unescaped inside
JSON payloads.
"""

import re
from codecs import BOM_UTF8
from typing import Final

from gateway.core.errors import BackendProtocolError
from gateway.framing.sse_fast_path import BLANK, SSEFastPath

_FIELD: Final = len(b"data: ")
_END: Final = len(BLANK)
_CR: Final = ord("\r")
_BOM: Final = BOM_UTF8[0]
# Between two events these are nothing, and a backend may send millions.
_BLANK_LINES: Final = re.compile(rb"\n+")


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
        self._fast_path = SSEFastPath(max_event)

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the data of every event completed by these bytes, in order. Raises BackendProtocolError."""
        if not self._started and data and not self._partial and data[0] != _BOM:
            self._started = self._between = True
        # Nearly every read holds whole events that begin alike.
        if self._between and (split := self._fast_path.split(data)) is not None:
            return split
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
            first, blank, data = data.partition(BLANK)
            self._lines(first + blank, events)
        # Nearly every read ends with a blank line: a search from there is the shortest.
        last = data.rfind(BLANK)
        whole = 0 if last < 0 else last + _END
        if whole:
            self._whole(data[:whole], events)
        if whole < len(data):
            self._lines(data[whole:], events)
        self._between = self._started and not (self._partial or self._data or self._after_cr)

    def _whole(self, data: bytes, events: list[bytes]) -> None:
        """Reads events that end with a blank line each: one by one, until one begins as the last one did."""
        at = 0
        while at < len(data) and not self._fast_path.fits(data, at):
            if blank_lines := _BLANK_LINES.match(data, at):
                at = blank_lines.end()
                continue
            end = _next_blank(data, at)
            self._event(data[at:end], events)
            at = end + _END
        if at < len(data) and (split := self._fast_path.split(data[at:])) is not None:
            events += split
            return
        for piece, is_data in self._fast_path.pieces(data, at):
            if is_data:
                events.append(piece)
            else:
                for event in piece.split(BLANK):
                    self._event(event, events)

    def _event(self, event: bytes, events: list[bytes]) -> None:
        """Reads one event, without its blank line."""
        found = self._fast_path.read(event)
        if found is None:
            self._lines(event + BLANK, events)
        else:
            events.append(found)

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
            line = line.removeprefix(BOM_UTF8)
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


def _next_blank(data: bytes, at: int) -> int:
    """Returns the position of the next blank line, or the end of the bytes."""
    # Not `data.find(BLANK, at)`: the search for one byte takes a fraction of the time, and an event has few lines.
    end = data.find(b"\n", at)
    while end >= 0 and not data.startswith(b"\n", end + 1):
        end = data.find(b"\n", end + 1)
    return len(data) if end < 0 else end
