"""Decodes the bytes of a response, either a stream of chunks or one JSON object, into events."""

from collections.abc import Iterator

from adapters.gemini.backend.chunk import ChunkReader
from adapters.gemini.backend.chunk_fast_path import read_own, read_plain
from gateway.adapter import DecoderExtensions
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.wires.event_stream import EventStream, FastPath
from gateway.wires.json_body import decode_body


class GeminiDecoder(EventStream):
    """Decodes one response. `passes`: the client speaks this dialect."""

    def __init__(self, max_event: int, seed: int, *, passes: bool) -> None:
        self.max_event = max_event
        self._chunks = ChunkReader(seed, passes=passes)
        self.extensions = DecoderExtensions(holding=self._chunks)

    def begin(self) -> tuple[ChunkReader, FastPath]:
        """Returns the reader of the chunks, up to the finish reason with the counts, or to the end of the bytes."""
        return self._chunks, self._plain

    def _plain(self, chunks: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of the chunks that are nothing but text, as FastPath says."""
        reader = self._chunks
        if not reader.reads_plain:
            return next(chunks, None)
        if reader.passes:
            for chunk in chunks:
                if (own := read_own(chunk)) is None:
                    return chunk
                events += reader.own(own)
            return None
        for chunk in chunks:
            if (plain := read_plain(chunk)) is None:
                return chunk
            events.append(reader.plain(plain))
        return None

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a response that is one JSON document. Raises BackendError."""
        answer, notices = decode_body(body)
        events: list[Event] = []
        # Without `alt=sse` the chunks of a stream are the elements of an array.
        try:
            for chunk in answer if isinstance(answer, list) else [answer]:
                events += self._chunks.event(chunk)
            if not self._chunks.finished:
                events += self._chunks.complete()
        except BackendError as error:
            error.keep(events)
            raise
        return [*notices, *events]
