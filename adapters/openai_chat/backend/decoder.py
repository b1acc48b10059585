"""Decodes the bytes of a response, either a stream of chunks or one JSON object, into events."""

from functools import partial

from adapters.openai_chat.backend.chunk import ChunkReader
from adapters.openai_chat.backend.completion_fast_path import read_plain
from adapters.openai_chat.backend.delta_fast_path import DeltaFastPath
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event
from gateway.core.state_rule import StateRule
from gateway.wires.event_stream import EventStream, FastPath
from gateway.wires.json_body import decode_body


class ChatDecoder(EventStream):
    """Decodes one response. `stops` are the client's stop sequences; `passes`: the client speaks this dialect, so that
    it gets the fields which no event expresses; `keeps` are those that the gateway keeps. `finish_optional`: a stream
    may end without a finish reason."""

    mark = b"[DONE]"

    def __init__(
        self,
        max_event: int,
        seed: int,
        stops: tuple[str, ...] = (),
        *,
        passes: bool = True,
        keeps: StateRule | None = None,
        finish_optional: bool = False,
    ) -> None:
        self.max_event = max_event
        self._passes = passes
        self._create = partial(ChunkReader, seed, stops, passes=passes, keeps=keeps, finish_optional=finish_optional)

    def begin(self) -> tuple[ChunkReader, FastPath]:
        """Returns the reader of the chunks, which end with `[DONE]`, or with the bytes behind a finish reason."""
        reader = self._create()
        self._deltas = DeltaFastPath(reader.more)
        return reader, self._deltas.read

    def learn(self, frame: bytes, document: Json, events: list[Event]) -> None:
        """Learns what stands around the text of a chunk."""
        self._deltas.learn(frame, document, events)

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a whole response. Raises BackendError."""
        events = read_plain(body) if self._passes else None
        if events is not None:
            return events
        answer, notices = decode_body(body)
        if isinstance(answer, list) and len(answer) > 1:
            message = f"The backend sent {len(answer)} responses instead of one."
            raise BackendProtocolError(message, code="upstream_invalid_response")
        if isinstance(answer, list) and answer:
            answer = answer[0]
        return [*notices, *self._create().completion(answer)]
