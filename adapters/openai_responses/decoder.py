"""Decodes the bytes of a response, either a stream of events or one JSON object, into events."""

from typing import Final

from adapters.json_body import JsonBody
from adapters.openai_responses.delta_fast_path import DeltaFastPath
from adapters.openai_responses.event_reader import EventReader
from adapters.openai_responses.failure import invalid_event
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.framing.json_text import NotJson, decode_json
from gateway.framing.sse import SSEDecoder

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
# Some servers end every stream with it, as that of chat completions ends.
_DONE: Final = b"[DONE]"


class ResponsesDecoder:
    """Decodes one response. The first byte shows which of the two forms it has: some backends never stream."""

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self._reader = reader
        self._max_event = max_event
        self._form: _Stream | _Whole | None = None
        self.done = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of the next bytes. Raises BackendError."""
        if self._form is None:
            data = data.lstrip(_BLANK)
            if not data:
                return []
            if data[:1] in (b"{", b"["):
                self._form = _Whole(self._reader, self._max_event)
            else:
                self._form = _Stream(self._reader, self._max_event)
        events = self._form.feed(data)
        self.done = self._form.done
        return events

    def close(self) -> list[Event]:
        """Return the events at the end of the bytes. Raises BackendTruncated unless the response was complete."""
        if self._form is None:
            raise BackendTruncated("The backend's response is empty.", code="upstream_invalid_response")
        self.done = True
        return self._form.close()


class _Stream:
    """Reads server-sent events, of which the one with the finished response is the last."""

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self.done = False
        self._reader = reader
        self._sse = SSEDecoder(max_event)
        self._fast_path = DeltaFastPath(reader)

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            chunks = iter(self._sse.feed(data))
            while not self.done and (chunk := self._fast_path.read(chunks, events)) is not None:
                self._event(chunk, events)
            if self.done and any(chunk.strip() not in (b"", _DONE) for chunk in chunks):
                self._reader.late(events)
            if self._sse.fault is not None and not self.done:
                raise self._sse.fault
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        events: list[Event] = []
        if self.done:
            return events
        try:
            tail = self._sse.tail()
            if tail is not None and tail.strip() == _DONE:
                tail = None
            if tail is not None:
                self._tail(tail, events)
            self.done = True
            if not self._reader.finished:
                raise self._truncated(tail)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def _event(self, data: bytes, events: list[Event]) -> None:
        try:
            self._read(data, events)
        except BackendProtocolError as error:
            error.notices = (*error.notices, malformed_event(data))
            raise

    def _read(self, data: bytes, events: list[Event]) -> None:
        stripped = data.strip()
        if stripped == _DONE:
            raise self._truncated(None)
        if stripped:
            try:
                event = decode_json(data, lenient=True)
            except NotJson as error:
                raise invalid_event(f"not JSON: {error.reason}") from error
            events += self._reader.event(event)
            self.done = self._reader.finished

    def _tail(self, tail: bytes, events: list[Event]) -> None:
        """Read an event that lacks its blank line: a whole one counts, and half of one shows that the bytes were cut
        off."""
        try:
            decode_json(tail, lenient=True)
        except NotJson:
            return
        self._event(tail, events)

    def _truncated(self, half: bytes | None) -> BackendTruncated:
        """Create the error for an incomplete response: `upstream_invalid_response` when no part of one arrived."""
        if not self._reader.started and half is None:
            return BackendTruncated("The backend's stream contains no response.", code="upstream_invalid_response")
        return BackendTruncated("The backend's stream ended before the response was complete.")


class _Whole:
    """Reads one JSON object when its bytes have ended."""

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self.done = False
        self._reader = reader
        self._body = JsonBody(max_event)

    def feed(self, data: bytes) -> list[Event]:
        self._body.feed(data)
        return []

    def close(self) -> list[Event]:
        if self.done:
            return []
        self.done = True
        return self._reader.response(self._body.decode())
