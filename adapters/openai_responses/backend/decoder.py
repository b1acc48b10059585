"""Decodes the bytes of a response, either a stream of events or one JSON object, into events."""

from functools import partial
from typing import Final

from adapters.openai_responses.backend.delta_fast_path import DeltaFastPath
from adapters.openai_responses.backend.event_reader import EventReader
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.framing.json_text import NotJson, decode_json
from gateway.framing.sse import SSEDecoder
from gateway.wires.json_body import EventJson, JsonDocument
from gateway.wires.stream_or_json import StreamOrJson

# Some servers end every stream with it, as that of chat completions ends.
_DONE: Final = b"[DONE]"


class ResponsesDecoder(StreamOrJson):
    """Decodes one response."""

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self._stream = partial(_Stream, reader, max_event)
        self._document = partial(JsonDocument, reader.response, max_event)


class _Stream:
    """Reads server-sent events, of which the one with the finished response is the last."""

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self.done = False
        self._reader = reader
        self._sse = SSEDecoder(max_event)
        self._json = EventJson()
        self._fast_path = DeltaFastPath(reader)

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            chunks = iter(self._sse.feed(data))
            while not self.done:
                chunk = next(chunks, None) if self._json.half else self._fast_path.read(chunks, events)
                if chunk is None:
                    break
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
        try:
            tail = self._sse.tail()
            if tail is not None and tail.strip() == _DONE:
                tail = None
            if tail is not None:
                self._tail(tail, events)
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
            event = self._json.read(data, events)
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
