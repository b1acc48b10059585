"""Reads a response that is a stream of events, or one document, up to its end: the loop of every such wire.

A wire gives its frames (server-sent events, or lines), a reader of their documents that also says what an end without
its mark means, and its fast path. What is guarded here: an event that cannot be read fails a response until it is
finished, and nothing behind the finish can; what follows the end is reported, and an end before the finish is never a
success.

Measured by `python -m bench.chunk`, rows "native", "messages", "responses", "gemini" and "text".
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final, Literal, Protocol, TypeAlias

from gateway.adapter import NO_EXTENSIONS, DecoderExtensions
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import LATE_FAULT, TAIL_BROKEN, malformed_event
from gateway.framing.sse import SSEDecoder
from gateway.wires.json_body import EventJson

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_OPENS_JSON: Final = (b"{", b"[")
# A whole response may be larger than any one event of a stream.
EVENTS_PER_RESPONSE: Final = 4

# Where a stream ended that is not finished: at the mark of its end, at the end of its bytes behind a whole event, with
# an event that lacks only its blank line, or in the middle of an event.
StreamEnd: TypeAlias = Literal["mark", "bytes", "event", "half event"]
# Adds the events of all frames of the common form, and returns the first frame that must be read in full, or None
# behind the last one.
FastPath: TypeAlias = Callable[[Iterator[bytes], list[Event]], bytes | None]


class Frames(Protocol):
    """The interface of all framings. Both methods raise BackendProtocolError; `fault` holds an error that occurred
    after whole events."""

    @property
    def fault(self) -> BackendProtocolError | None: ...

    def feed(self, data: bytes) -> list[bytes]: ...

    def tail(self) -> bytes | None: ...


class ResponseReader(Protocol):
    """Turns the documents of one stream into events. `finished`: the response is complete, so that nothing behind can
    fail it. `done`: nothing that follows is read; the mark of the end sets it, too."""

    finished: bool
    done: bool

    def event(self, document: Json, /) -> list[Event]:
        """Returns the events of one document. Raises BackendError."""
        ...

    def end(self, where: StreamEnd) -> list[Event]:
        """Returns the events that complete a response whose end says that it is finished, as it then is. Raises
        BackendTruncated for any other."""
        ...

    def late(self) -> list[Event]:
        """Returns the report of data behind the end of the response."""
        ...


class EventStream:
    """A decoder of one response: a stream of server-sent events, or one JSON document where its first byte says so.
    (No constructor here: it would cost each request a call.)

    - `max_event`: the maximum number of bytes of one event; a document may have EVENTS_PER_RESPONSE times as many.
    - `mark`: the data of the event that ends the stream. `behind`: that of events which mean nothing behind the end.
    - `begin` and `document` are what a wire defines.
    """

    done = False
    extensions: DecoderExtensions = NO_EXTENSIONS
    mark: bytes | None = None
    behind: ClassVar[frozenset[bytes]] = frozenset()
    max_event: int
    _frames: Frames | None = None
    _body: bytearray | None = None
    _json: EventJson
    _reader: ResponseReader
    _fast_path: FastPath

    def begin(self) -> tuple[ResponseReader, FastPath]:
        """Returns the reader of a stream, and its fast path."""
        raise NotImplementedError

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a response that is one document. Raises BackendError."""
        raise NotImplementedError

    def learn(self, frame: bytes, document: Json, events: list[Event]) -> None:
        """Learns from a frame that was read in full, where the fast path does."""

    def start(self, frames: Frames | None) -> None:
        """Begins a stream of these frames; None: the response is a document whatever its first byte."""
        self._frames = frames
        if frames is None:
            self._body = bytearray()
        else:
            self._json = EventJson()
            self._reader, self._fast_path = self.begin()

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events of the next bytes. Raises BackendError, which keeps the events before the fault."""
        frames = self._frames
        if frames is None:
            if self._body is None and not (data := data.lstrip(_BLANK)):
                return []
            if self._body is not None or data[:1] in _OPENS_JSON:
                return self._collect(data)
            self.start(frames := SSEDecoder(self.max_event))
        found = frames.feed(data)
        if not found:
            return []
        events: list[Event] = []
        reader = self._reader
        waiting = iter(found)
        try:
            while not reader.done:
                frame = next(waiting, None) if self._json.half else self._fast_path(waiting, events)
                if frame is None:
                    break
                self._guarded(frame, events)
            if reader.done:
                self.done = True
                if any(frame.strip() not in self.behind for frame in waiting):
                    events += reader.late()
            elif frames.fault is not None:
                raise frames.fault
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        """Returns the events at the end of the bytes. Raises BackendTruncated, which keeps the events before it, unless
        the response is complete."""
        frames = self._frames
        if frames is None and self._body is None:
            raise empty_response()
        if self.done:
            return []
        self.done = True
        if frames is None:
            return self.document(bytes(self._body or b""))
        tail = frames.tail()
        events: list[Event] = []
        try:
            where = "bytes" if tail is None else self._tail(tail, events)
            if not self._reader.finished:
                events += self._reader.end(where)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def _collect(self, data: bytes) -> list[Event]:
        body = self._body = bytearray() if self._body is None else self._body
        body += data
        if len(body) > EVENTS_PER_RESPONSE * self.max_event:
            raise response_too_large(EVENTS_PER_RESPONSE * self.max_event)
        return []

    def _guarded(self, frame: bytes, events: list[Event]) -> None:
        """Reads one event. The response is complete once it is finished, so that no later fault can fail it."""
        finished = self._reader.finished
        try:
            self._event(frame, events)
        except BackendError as error:
            if not finished:
                if isinstance(error, BackendProtocolError):
                    error.notices = (*error.notices, malformed_event(frame))
                raise
            events.append(LATE_FAULT)

    def _event(self, frame: bytes, events: list[Event]) -> None:
        reader, data = self._reader, frame.strip()
        if data == self.mark:
            reader.done = True
            if not reader.finished:
                ended = reader.end("mark")
                self._json.end(events)
                events += ended
        elif data:
            document = self._json.read(frame, events)
            read = reader.event(document)
            self.learn(frame, document, read)
            events += read
            if reader.finished:
                self._json.end(events)

    def _tail(self, tail: bytes, events: list[Event]) -> StreamEnd:
        """Reads an event that lacks its blank line: a whole one counts, and half of one shows that the bytes were cut
        off. Returns which it is."""
        if not tail.strip():
            return "event"
        finished = self._reader.finished
        try:
            frame = tail if self._json.half else self._fast_path(iter((tail,)), events)
            if frame is not None:
                self._event(frame, events)
        except BackendError as error:
            broken = isinstance(error, BackendProtocolError)
            if finished:
                events.append(TAIL_BROKEN if broken else LATE_FAULT)
            elif not broken:
                raise
            return "half event"
        return "event"


def response_too_large(limit: int) -> BackendProtocolError:
    """Returns the error for a response of more than `limit` bytes, which is kept until its bytes have ended."""
    return BackendProtocolError(
        f"The backend's response is larger than {limit} bytes.", code="upstream_response_too_large"
    )


def empty_response() -> BackendTruncated:
    """Returns the error for a response that has no content."""
    return BackendTruncated("The backend's response is empty.", code="upstream_invalid_response")
