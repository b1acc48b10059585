"""Decodes the bytes of a response, either a stream of events or one JSON object, into events."""

from typing import ClassVar

from adapters.openai_responses.backend.delta_fast_path import DeltaFastPath
from adapters.openai_responses.backend.event_reader import EventReader
from gateway.core.events import Event
from gateway.wires.event_stream import EventStream, FastPath
from gateway.wires.json_body import decode_body


class ResponsesDecoder(EventStream):
    """Decodes one response."""

    # Some servers end every stream with it, as that of chat completions ends.
    mark = b"[DONE]"
    behind: ClassVar[frozenset[bytes]] = frozenset({b"", mark})

    def __init__(self, reader: EventReader, max_event: int) -> None:
        self.max_event = max_event
        self._events = reader

    def begin(self) -> tuple[EventReader, FastPath]:
        """Returns the reader of the events, of which the one with the finished response is the last."""
        return self._events, DeltaFastPath(self._events).read

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a whole response. Raises BackendError."""
        response, notices = decode_body(body)
        return [*notices, *self._events.response(response)]
