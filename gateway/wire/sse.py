"""Server-sent events, bytes in, events out (WHATWG HTML, section 9.2.6, without reconnection).

Lines end at LF, CR or CRLF only. `str.splitlines()` would also cut at U+2028 and U+0085, which stand unescaped
inside JSON payloads.
"""

from typing import Final

from gateway.errors import BackendProtocolError

_BOM: Final = b"\xef\xbb\xbf"


class SSEDecoder:
    """Yields the data of each event as bytes. The event's name and id are ignored.

    An event is dispatched by its blank line. `tail()` gives what a missing last blank line left behind.
    No event may exceed `max_event` bytes: BackendProtocolError `upstream_event_too_large`.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._buffer = b""
        self._data: list[bytes] = []
        self._size = 0
        self._skip_lf = False
        self._started = False

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event completed by these bytes, in order. Raises BackendProtocolError."""
        events: list[bytes] = []
        if self._skip_lf and data:
            if data[:1] == b"\n":
                data = data[1:]
            self._skip_lf = False
        lines = (self._buffer + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._skip_lf = data[-1:] == b"\r"
        self._buffer = lines.pop()
        for line in lines:
            self._line(line, events)
        if self._size + len(self._buffer) > self._max_event:
            self._too_large()
        return events

    def tail(self) -> bytes | None:
        """The data of an event that was never closed by a blank line; None when there is none."""
        events: list[bytes] = []
        self._line(self._buffer, events)
        self._line(b"", events)
        self._buffer = b""
        return events[0] if events else None

    def _line(self, line: bytes, events: list[bytes]) -> None:
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
            value = value[1:] if value[:1] == b" " else value
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > self._max_event:
                self._too_large()

    def _too_large(self) -> None:
        raise BackendProtocolError(
            f"The backend sent an event larger than {self._max_event} bytes.", code="upstream_event_too_large"
        )
