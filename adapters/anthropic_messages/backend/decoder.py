"""Decodes the bytes of a response, either a stream of events or one JSON object, into events."""

from functools import partial

from adapters.anthropic_messages.backend.delta_fast_path import read_piece
from adapters.anthropic_messages.backend.message import MessageReader
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.framing.sse import SSEDecoder
from gateway.wires.json_body import EventJson, JsonDocument
from gateway.wires.stream_or_json import StreamOrJson


class MessagesDecoder(StreamOrJson):
    """Decodes one response. `own_client`: the client speaks the same API, and gets what no other event expresses;
    `seed` as in CallIds."""

    def __init__(self, max_event: int, *, seed: int = 0, own_client: bool = False) -> None:
        reader = MessageReader(own_client, seed=seed)
        self._stream = partial(_Stream, reader, max_event)
        self._document = partial(JsonDocument, reader.message, max_event)


class _Stream:
    """Reads server-sent events, ended by `message_stop`. Their names are those of their types, and are not read."""

    def __init__(self, reader: MessageReader, max_event: int) -> None:
        self.done = False
        self._reader = reader
        self._sse = SSEDecoder(max_event)
        self._json = EventJson()

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        reader = self._reader
        try:
            for found in self._sse.feed(data):
                if reader.finished:
                    events += reader.late()
                    break
                piece = None if self._json.half else read_piece(found)
                if piece is None or (event := reader.piece(piece)) is None:
                    self._event(found, events)
                else:
                    events.append(event)
            if self._sse.fault is not None and not reader.finished:
                raise self._sse.fault
            self.done = reader.finished
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

    def _event(self, data: bytes, events: list[Event]) -> None:
        if not data.strip():
            return
        try:
            event = self._json.read(data, events)
            events += self._reader.event(event)
        except BackendProtocolError as error:
            error.notices = (*error.notices, malformed_event(data))
            raise

    def _tail(self, tail: bytes, events: list[Event]) -> None:
        """Read an event that lacks its blank line: a whole one counts, and half of one shows that the bytes were cut
        off."""
        try:
            self._event(tail, events)
        except BackendProtocolError:
            return

    def _incomplete(self, half: bytes | None) -> BackendTruncated:
        """Create the error for an incomplete response: `upstream_invalid_response` when no part of one arrived."""
        if self._reader.empty and half is None:
            return BackendTruncated("The backend's response contains no message.", code="upstream_invalid_response")
        return BackendTruncated("The backend's stream ended before the message was complete.")
