"""Reads the JSON of a response, of one document or of the events of a stream, and says where its text was mended.

Servers that count in tokens or in units of UTF-16 cut a character in two: one event ends with its first half, the next
one begins with the other (RFC 8259, section 7: a character outside the first plane is written as a pair of escapes).
"""

import re
from typing import Final

from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Notice
from gateway.framing.json_text import NotJson, decode_json, repair_surrogates, repair_utf8

_MENDED: Final = Notice(
    "backend", "changed", "TEXT_MENDED", "half a character of a text became U+FFFD, or was left out", level="warning"
)
# The first half of a character at the end of a string: an escape, or the beginning of its UTF-8. Other escapes are
# matched so that `\\\\ud83d`, a backslash and text, is none.
_FIRST_HALF: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<escape>u[dD][89abAB][0-9a-fA-F]{2})(?=\")|.)"
    rb"|(?P<bytes>(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})(?=\"))",
    re.DOTALL,
)
_OTHER_HALF: Final = re.compile(rb"(?<!\\)\"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2}|[\x80-\xbf])")


def text_in(value: Json) -> str | None:
    """Returns a text that is not empty; None for any other value."""
    return value if isinstance(value, str) and value else None


class EventJson:
    """Decodes the events of one stream. Half a character at the end of a string, `half`, waits for the next event:
    while it does, every event has to be read here."""

    def __init__(self) -> None:
        self.half = b""
        self._told = False

    def read(self, data: bytes, events: list[Event]) -> Json:
        """Returns the document of an event; adds a notice when its text was mended. Raises BackendProtocolError."""
        half, self.half = self.half, b""
        try:
            document = decode_json(data)
        except NotJson:
            return self._mended(data, half, events)
        if half:
            self._tell(events)
        return document

    def end(self, events: list[Event]) -> None:
        """Adds the notice for half a character that nothing will follow."""
        if self.half:
            self.half = b""
            self._tell(events)

    def _mended(self, data: bytes, half: bytes, events: list[Event]) -> Json:
        """Returns the document of an event whose text has half a character. Raises BackendProtocolError."""
        whole = _OTHER_HALF.sub(lambda found: found[0] + half, data, count=1) if half else data
        cut, self.half = _without_half(whole)
        try:
            document, mended = decode_mended(cut)
        except NotJson as error:
            raise invalid_event(f"not JSON: {error.reason}") from error
        if mended or (half and whole == data):
            self._tell(events)
        return document

    def _tell(self, events: list[Event]) -> None:
        if not self._told:
            self._told = True
            events.append(_MENDED)


def _without_half(data: bytes) -> tuple[bytes, bytes]:
    """Returns the event without half a character at the end of a string, the last one that has it, and the half."""
    halves = [found for found in _FIRST_HALF.finditer(data) if found["escape"] or found["bytes"]]
    if not halves:
        return data, b""
    last = halves[-1]
    return data[: last.start()] + data[last.end() :], last[0]


def decode_mended(data: bytes) -> tuple[Json, bool]:
    """Returns the value, with U+FFFD for each half of a character, and whether there was one. Raises NotJson."""
    try:
        return decode_json(data), False
    except NotJson:
        mended = repair_surrogates(repair_utf8(data))
        if mended == data:
            raise
        return decode_json(mended), True


def decode_body(body: bytes) -> tuple[Json, list[Event]]:
    """Decodes a whole body, with a notice if its text was mended. Raises BackendTruncated if it ends in the middle of
    its JSON, and BackendProtocolError (`upstream_invalid_response`) if it is not JSON."""
    try:
        document, mended = decode_mended(body)
        return document, [_MENDED] if mended else []
    except NotJson as error:
        if error.truncated:
            raise BackendTruncated("The backend's response ended in the middle of its JSON.") from error
        message = f"The backend's response is not valid JSON: {error.reason}."
        raise BackendProtocolError(message, code="upstream_invalid_response") from error
