"""Decodes the bytes of a response, either a stream of chunks or one JSON object, into events."""

from functools import partial

from adapters.gemini.backend.chunk import NO_CANDIDATE, ChunkReader
from adapters.gemini.backend.chunk_fast_path import read_own, read_plain
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.core.notices import Notice
from gateway.framing.sse import SSEDecoder
from gateway.wires.json_body import EventJson, JsonDocument
from gateway.wires.stream_or_json import StreamOrJson


class GeminiDecoder(StreamOrJson):
    """Decodes one response. `passes`: the client speaks this dialect."""

    def __init__(self, max_event: int, seed: int, *, passes: bool) -> None:
        reader = self._reader = ChunkReader(seed, passes=passes)
        self._stream = partial(_Stream, reader, max_event)
        self._document = partial(JsonDocument, partial(_whole, reader), max_event)

    @property
    def progress(self) -> int:
        """The pieces of calls so far, of which only the whole call is reported."""
        return self._reader.calls.pieces


class _Stream:
    """Reads server-sent events with one chunk each, up to the finish reason with the counts, or to the end of the
    bytes."""

    def __init__(self, reader: ChunkReader, max_event: int) -> None:
        self.done = False
        self._reader = reader
        self._sse = SSEDecoder(max_event)
        self._json = EventJson()

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            for chunk in self._sse.feed(data):
                if self._reader.complete:
                    self._reader.late(events)
                    break
                self._event(chunk, events)
            if self._sse.fault is not None and not self._reader.finished:
                raise self._sse.fault
            self.done = self._reader.complete
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        events: list[Event] = []
        try:
            tail = self._sse.tail()
            if tail is not None:
                self._tail(tail, events)
            if not self._reader.finished:
                raise self._incomplete(tail)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def _tail(self, tail: bytes, events: list[Event]) -> None:
        """Read an event that lacks its blank line: a whole one counts, and half of one shows that the bytes were cut
        off."""
        try:
            self._event(tail, events)
        except BackendProtocolError:
            if self._reader.finished:
                detail = "an incomplete event after the end of the response"
                events.append(Notice("backend", "dropped", "TAIL_BROKEN", detail, level="warning"))

    def _incomplete(self, half: bytes | None) -> BackendTruncated:
        if self._reader.empty and half is None:
            return BackendTruncated(NO_CANDIDATE, code="upstream_invalid_response")
        return BackendTruncated("The backend's stream ended before the response was complete.")

    def _event(self, data: bytes, events: list[Event]) -> None:
        """Read one event. The response is complete after the finish reason, so that a later fault cannot fail it."""
        reads_plain = self._reader.reads_plain and not self._json.half
        if reads_plain and self._reader.passes:
            if (own := read_own(data)) is not None:
                events += self._reader.own(own)
                return
        elif reads_plain and (plain := read_plain(data)) is not None:
            events.append(self._reader.plain(plain))
            return
        finished = self._reader.finished
        if not data.strip():
            return
        try:
            events += self._reader.chunk(self._json.read(data, events))
            if self._reader.finished:
                self._json.end(events)
        except BackendError as error:
            if not finished:
                if isinstance(error, BackendProtocolError):
                    error.notices = (*error.notices, malformed_event(data))
                raise
            detail = "an error or a malformed event after the end of the response"
            events.append(Notice("backend", "ignored", "LATE_FAULT", detail, level="warning"))


def _whole(reader: ChunkReader, answer: Json) -> list[Event]:
    """Return the events of a response that is one JSON document."""
    events: list[Event] = []
    # Without `alt=sse` the chunks of a stream are the elements of an array.
    try:
        for chunk in answer if isinstance(answer, list) else [answer]:
            events += reader.chunk(chunk)
        if not reader.finished:
            events += reader.end()
    except BackendError as error:
        error.keep(events)
        raise
    return events
