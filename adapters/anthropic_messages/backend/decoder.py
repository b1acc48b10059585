"""Decodes the bytes of a response, either a stream of events or one JSON object, into events."""

from adapters.anthropic_messages.backend.delta_fast_path import DeltaFastPath
from adapters.anthropic_messages.backend.message import MessageReader
from gateway.core.events import Event
from gateway.wires.event_stream import EventStream, FastPath
from gateway.wires.json_body import decode_body


class MessagesDecoder(EventStream):
    """Decodes one response. `own_client`: the client speaks the same API, and gets what no other event expresses;
    `seed` as in CallIds."""

    def __init__(self, max_event: int, *, seed: int = 0, own_client: bool = False) -> None:
        self.max_event = max_event
        self._message = MessageReader(own_client, seed=seed)

    def begin(self) -> tuple[MessageReader, FastPath]:
        """Returns the reader of the events, up to `message_stop`. Their names are those of their types, and are not
        read."""
        return self._message, DeltaFastPath(self._message.piece).read

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a whole message. Raises BackendError."""
        message, notices = decode_body(body)
        return [*notices, *self._message.message(message)]
