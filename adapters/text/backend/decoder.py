"""Decodes the bytes of a response on any text wire into events."""

from collections.abc import Iterator

from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.event_reader import FAILURES, Piece, Reader
from adapters.text.backend.failure import reported_failure
from adapters.text.backend.frames import FRAMES, utf8
from gateway.adapter import DecoderExtensions
from gateway.core.conversation import Json
from gateway.core.errors import INCOMPLETE, BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, Reason, ReasoningDelta, ResponseStart, UsageReport
from gateway.core.malformed_event import invalid_event, malformed_event
from gateway.core.notices import Notice, Reported
from gateway.framing.json_text import NotJson
from gateway.response.role_marker_filter import TURN_INVENTED
from gateway.wires.event_stream import EventStream, FastPath, StreamEnd, empty_response
from gateway.wires.json_body import EventJson


class TextDecoder(EventStream):
    """Decodes one response. `own_stops` are the client's stop sequences, which mark no turn."""

    def __init__(
        self, reader: Reader, call_filter: CallFilter, max_event: int, own_stops: tuple[str, ...] = ()
    ) -> None:
        wire = reader.wire
        self._answer = AnswerReader(reader, call_filter, own_stops)
        self.extensions = DecoderExtensions(holding=self._answer)
        self.mark = self._answer.mark
        self.max_event = max_event
        self.start(None if wire.framing == "json" else FRAMES[wire.framing](max_event))

    def begin(self) -> tuple["AnswerReader", FastPath]:
        """Returns the reader of the events."""
        return self._answer, self._answer.plain if self._answer.wire.is_json else self._answer.raw

    def document(self, body: bytes) -> list[Event]:
        """Returns the events of a wire without events. Raises BackendError, which keeps the events before the fault."""
        events: list[Event] = []
        try:
            if body.strip():
                self._whole_event(body, events)
            if not self._answer.finished:
                events += self._answer.end("bytes")
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def _whole_event(self, body: bytes, events: list[Event]) -> None:
        json = EventJson()
        try:
            events += self._answer.event(json.read(body, events))
            if self._answer.finished:
                json.end(events)
        except BackendProtocolError as error:
            if isinstance(error.__cause__, NotJson) and error.__cause__.truncated:
                raise BackendTruncated("The backend's response ended in the middle of its JSON.") from error
            notices = (*error.notices, malformed_event(body))
            raise BackendProtocolError(error.message, code="upstream_invalid_response", notices=notices) from error


class AnswerReader:
    """Reads one response. `done`: nothing more is read: the mark of the end has come, or none will, or the response was
    cut off on purpose. `progress` counts the pieces of text, including those that are held back."""

    def __init__(self, reader: Reader, call_filter: CallFilter, own_stops: tuple[str, ...]) -> None:
        self.wire = wire = reader.wire
        self.mark = None if wire.last is None else wire.last.encode()
        self.finished = False
        self.done = False
        self.progress = 0
        self._reader = reader
        self._plain = reader.plain
        self._utf8 = utf8()
        self._call_filter = call_filter
        self._own_stops = own_stops
        self._started = False
        self._empty = True
        self._reported = Reported()
        self._usage: UsageReport | None = None

    def event(self, event: Json) -> list[Event]:
        """Returns the events of one event. Raises BackendError, which keeps the events before the fault."""
        if not self._reader.takes(event):
            raise invalid_event("it is not an object")
        events: list[Event] = []
        try:
            self._piece(self._reader.read(event), events)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def plain(self, frames: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of the frames that hold only text, as FastPath says."""
        texts, frame = self._plain.read(frames)
        if texts:
            self._empty = False
            self._texts(texts, events)
        return None if self.done else frame

    def raw(self, frames: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of the frames of a wire without JSON, as FastPath says. All of them are text, which may end
        within a character, but for the mark of the end."""
        for frame in frames:
            if frame.strip() == self.mark:
                return frame
            self._empty = self._empty and not frame
            self._texts([self._utf8.decode(frame)], events)
            if self.done:
                break
        return None

    def end(self, where: StreamEnd) -> list[Event]:
        """Returns the events that complete a response whose wire tells no finish reason. Raises BackendTruncated for
        any other."""
        if where == "half event":
            raise BackendTruncated("The backend's response ended in the middle of an event.")
        if self._empty and (where != "mark" or self.wire.is_json):
            raise empty_response()
        if where == "mark" and self.wire.is_json:
            raise BackendTruncated("The backend ended its stream without a finish reason.")
        if where != "mark" and self.wire.ends == "event":
            raise BackendTruncated(INCOMPLETE)
        events: list[Event] = []
        if where != "mark":
            self._texts([self._utf8.decode(b"", True)], events)
        if not self.finished:
            self._finish("stop", None, events)
        return events

    def late(self) -> list[Event]:
        """Returns the report of data behind the end."""
        events: list[Event] = []
        self._late("more data came after the end of the response", events)
        return events

    def _piece(self, piece: Piece, events: list[Event]) -> None:
        if piece.error is not None:
            raise reported_failure(piece.error)
        self._start(events)
        if piece.known:
            self._empty = False
        else:
            self._unknown(events)
        if piece.reasoning and not self.finished:
            self._call_filter.thinks_apart()
            events.append(ReasoningDelta(piece.reasoning))
        self._texts([piece.text], events)
        if piece.usage is not None:
            self._count(piece.usage, events)
        if piece.word is not None and not self.finished:
            self._note_stop(piece.stopped_by, events)
            self._close(piece.word, piece.stopped_by, events)

    def _unknown(self, events: list[Event]) -> None:
        if self.wire.framing == "json":
            raise BackendProtocolError("The backend's response contains no text.", code="upstream_invalid_response")
        if self._reported.is_new("UNKNOWN_EVENT"):
            detail = "an event has none of the fields that the wire defines"
            events.append(Notice("backend", "ignored", "UNKNOWN_EVENT", detail, level="warning"))

    def _start(self, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            events.append(ResponseStart())

    def _texts(self, texts: list[str], events: list[Event]) -> None:
        if not self._started:
            self._start(events)
        if "" in texts:
            texts = [text for text in texts if text]
        if not texts:
            return
        if self.finished:
            self._late("text came after the end of the response", events)
            return
        self.progress += len(texts)
        self._call_filter.feed(texts, events)
        if self._call_filter.stopped is not None:
            self._finish("tool_calls", self._call_filter.stopped, events)
            self.done = True

    def _late(self, detail: str, events: list[Event]) -> None:
        """Reports data after the end, except after a response that was cut off on purpose."""
        if self._call_filter.stopped is None and self._reported.is_new("LATE_CONTENT"):
            events.append(Notice("backend", "dropped", "LATE_CONTENT", detail, level="warning"))

    def _count(self, usage: UsageReport, events: list[Event]) -> None:
        """Keeps counts that arrive with every event and reports them once, with the last values."""
        self._usage = usage
        if self.finished:
            events.append(usage)

    def _note_stop(self, stop: str, events: list[Event]) -> None:
        """Reports a stop sequence that begins a line as another speaker's turn, unless it is one of the client's
        own."""
        if stop.startswith("\n") and stop not in self._own_stops:
            events.append(TURN_INVENTED)

    def _close(self, word: str, stop: str, events: list[Event]) -> None:
        if word.lower() in FAILURES:
            raise BackendRejected("The backend ended its response early.", code="upstream_stream_truncated")
        reason = self._reader.reason(word)
        if reason is None:
            detail = f"the backend's finish reason {word[:40]!r} is unknown; read as stop"
            events.append(Notice("backend", "changed", "FINISH_REASON_UNKNOWN", detail, level="warning"))
        self._finish(reason or "stop", word, events, stop if stop and stop in self._own_stops else None)

    def _finish(self, reason: Reason, word: str | None, events: list[Event], stop: str | None = None) -> None:
        self._start(events)
        if self._call_filter.stopped is None:
            self._call_filter.close(reason, events)
        if self._usage is not None:
            events.append(self._usage)
        events.append(Finish(reason, word, stop))
        self.finished = True
        self.done = self.done or (self.mark is None and self.wire.framing != "json")
