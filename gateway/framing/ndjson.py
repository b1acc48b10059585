"""Splits a byte stream into lines of JSON (newline-delimited JSON, as Ollama and many log streams write it).

Lines end at LF or CRLF only: U+2028 and similar characters stand unescaped inside JSON strings.
"""

from codecs import BOM_UTF8

from gateway.core.errors import BackendProtocolError


class NDJSONDecoder:
    """Returns each line that is not blank, without its end. `tail()` returns a last line without a line end.

    A line may have `max_event` bytes; one byte more raises BackendProtocolError `upstream_event_too_large`. The output,
    errors included, does not depend on how the bytes are cut: whole lines before an error are returned first, the error
    is stored as `fault`, and every later call raises it.
    """

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._partial = bytearray()  # the unfinished line; a bytearray grows in linear time, bytes would not
        self._started = False
        self.fault: BackendProtocolError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Returns every line completed by these bytes, in order. Raises BackendProtocolError."""
        if self.fault is not None:
            raise self.fault
        found: list[bytes] = []
        try:
            self._split(data, found)
        except BackendProtocolError as error:
            if not found:
                raise
            self.fault = error
        return found

    def tail(self) -> bytes | None:
        """Returns the last line, if it has no line end; None when there is none. Raises BackendProtocolError."""
        if self.fault is not None:
            raise self.fault
        line = self._line(bytes(self._partial))
        self._partial.clear()
        return line or None

    def _split(self, data: bytes, found: list[bytes]) -> None:
        *lines, rest = data.split(b"\n")
        if lines and self._partial:
            self._partial += lines[0]
            lines[0] = bytes(self._partial)
            self._partial.clear()
        for line in lines:
            # Nearly every line is one object.
            if not (self._started and line.endswith(b"}") and len(line) <= self._max_event):
                line = self._line(line)
            if line:
                found.append(line)
        if rest:
            self._partial += rest
            # The size excludes the line's end and the first line's byte order mark.
            self._bound(len(self._partial) - 1 - (0 if self._started else len(BOM_UTF8)))

    def _line(self, line: bytes) -> bytes:
        if not self._started:
            self._started = True
            line = line.removeprefix(BOM_UTF8)
        line = line.removesuffix(b"\r")
        self._bound(len(line))
        return b"" if line.isspace() else line

    def _bound(self, size: int) -> None:
        if size > self._max_event:
            raise BackendProtocolError(
                f"The backend sent an event larger than {self._max_event} bytes.", code="upstream_event_too_large"
            )
