"""Decodes the bytes of a response on any text wire into events."""

from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.event_reader import FAILURES, Piece, Reader
from adapters.text.backend.failure import reported_failure
from adapters.text.backend.frames import FRAMES, utf8
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, Reason, ReasoningDelta, ResponseStart, UsageReport
from gateway.core.malformed_event import invalid_event, malformed_event
from gateway.core.notices import Notice, Reported
from gateway.framing.json_text import NotJson
from gateway.response.role_marker_filter import TURN_INVENTED
from gateway.wires.json_body import EventJson


class TextDecoder:
    """Decodes one response.

    `own_stops` are the client's stop sequences, which mark no turn. `progress` counts the pieces of text, including
    those that are held back.
    """

    def __init__(
        self, reader: Reader, call_filter: CallFilter, max_event: int, own_stops: tuple[str, ...] = ()
    ) -> None:
        self._reader = reader
        self._wire = reader.wire
        self._plain = reader.plain
        self._frames = FRAMES[reader.wire.framing](max_event)
        self._last = None if reader.wire.last is None else reader.wire.last.encode()
        self._utf8 = utf8()
        self._json = EventJson()
        self._call_filter = call_filter
        self._own_stops = own_stops
        self._started = False
        self._empty = True
        self._finished = False
        self._reported = Reported()
        self._usage: UsageReport | None = None
        self.done = False
        self.progress = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of the next bytes. Raises BackendError, which keeps the events before the fault."""
        events: list[Event] = []
        at = 0
        try:
            payloads = self._frames.feed(data)
            while at < len(payloads):
                if self.done:
                    self._late("more data came after the end of the response", events)
                    break
                if not self._json.half and (texts := self._plain.read(payloads, at)):
                    self._empty = False
                    self._texts(texts, events)
                    at += len(texts)
                else:
                    self._payload(payloads[at], events)
                    at += 1
            if self._frames.fault is not None and not self.done:
                raise self._frames.fault
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        """Return the events at the end of the bytes. Raises BackendTruncated, which keeps the events before it, unless
        the response was complete."""
        events: list[Event] = []
        try:
            self._end_of_bytes(events)
        except BackendError as error:
            error.keep(events)
            raise
        self.done = True
        return events

    def _end_of_bytes(self, events: list[Event]) -> None:
        if self.done:
            return
        tail = self._frames.tail()
        if tail is not None and tail.strip():
            (self._document if self._wire.framing == "json" else self._tail)(tail, events)
        if self._finished:
            return
        if self._empty:
            raise _hollow()
        if self._wire.ends == "event":
            raise BackendTruncated("The backend's response ended before it was complete.")
        self._text(self._utf8.decode(b"", True), events)
        if not self.done:
            self._finish("stop", None, events)

    def _payload(self, payload: bytes, events: list[Event]) -> None:
        if self._last is not None and payload.strip() == self._last:
            self._end(events)
        elif not self._wire.is_json:
            self._empty = self._empty and not payload
            self._text(self._utf8.decode(payload), events)
        elif payload.strip():
            try:
                self._event(self._json.read(payload, events), events)
                if self._finished:
                    self._json.end(events)
            except BackendProtocolError as error:
                error.notices = (*error.notices, malformed_event(payload))
                raise

    def _event(self, event: Json, events: list[Event]) -> None:
        if not self._reader.takes(event):
            raise invalid_event("it is not an object")
        self._piece(self._reader.read(event), events)

    def _end(self, events: list[Event]) -> None:
        """Handle the event that closes the stream."""
        if not self._finished:
            if self._wire.is_json and self._empty:
                raise _hollow()
            if self._wire.is_json:
                raise BackendTruncated("The backend ended its stream without a finish reason.")
            self._finish("stop", None, events)
        self.done = True

    def _tail(self, tail: bytes, events: list[Event]) -> None:
        """Read an event that lacks its end: a whole one counts, and half of one shows that the bytes were cut off."""
        try:
            self._payload(tail, events)
        except BackendProtocolError:
            if self._finished:
                detail = "an incomplete event after the end of the response"
                events.append(Notice("backend", "dropped", "TAIL_BROKEN", detail, level="warning"))
            else:
                raise BackendTruncated("The backend's response ended in the middle of an event.") from None

    def _document(self, body: bytes, events: list[Event]) -> None:
        """Read the whole response of a wire without events."""
        try:
            self._payload(body, events)
        except BackendProtocolError as error:
            if isinstance(error.__cause__, NotJson) and error.__cause__.truncated:
                raise BackendTruncated("The backend's response ended in the middle of its JSON.") from error
            raise BackendProtocolError(
                error.message, code="upstream_invalid_response", notices=error.notices
            ) from error

    def _piece(self, piece: Piece, events: list[Event]) -> None:
        if piece.error is not None:
            raise reported_failure(piece.error)
        self._start(events)
        if piece.known:
            self._empty = False
        else:
            self._unknown(events)
        if piece.reasoning and not self._finished:
            self._call_filter.thinks_apart()
            events.append(ReasoningDelta(piece.reasoning))
        self._text(piece.text, events)
        if piece.usage is not None:
            self._count(piece.usage, events)
        if piece.word is not None and not self._finished:
            self._note_stop(piece.stopped_by, events)
            self._close(piece.word, piece.stopped_by, events)

    def _unknown(self, events: list[Event]) -> None:
        if self._wire.framing == "json":
            raise BackendProtocolError("The backend's response contains no text.", code="upstream_invalid_response")
        if self._reported.is_new("UNKNOWN_EVENT"):
            detail = "an event has none of the fields that the wire defines"
            events.append(Notice("backend", "ignored", "UNKNOWN_EVENT", detail, level="warning"))

    def _start(self, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            events.append(ResponseStart())

    def _text(self, text: str, events: list[Event]) -> None:
        self._texts([text], events)

    def _texts(self, texts: list[str], events: list[Event]) -> None:
        if not self._started:
            self._start(events)
        if "" in texts:
            texts = [text for text in texts if text]
        if not texts:
            return
        if self._finished:
            self._late("text came after the end of the response", events)
            return
        self.progress += len(texts)
        self._call_filter.feed(texts, events)
        if self._call_filter.stopped is not None:
            self._finish("tool_calls", self._call_filter.stopped, events)
            self.done = True

    def _late(self, detail: str, events: list[Event]) -> None:
        """Report data after the end, except after a response that was cut off on purpose."""
        if self._call_filter.stopped is None and self._reported.is_new("LATE_CONTENT"):
            events.append(Notice("backend", "dropped", "LATE_CONTENT", detail, level="warning"))

    def _count(self, usage: UsageReport, events: list[Event]) -> None:
        """Keep counts that arrive with every event and report them once, with the last values."""
        self._usage = usage
        if self._finished:
            events.append(usage)

    def _note_stop(self, stop: str, events: list[Event]) -> None:
        """Report a stop sequence that begins a line as another speaker's turn, unless it is one of the client's own."""
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
        self._finished = True
        self.done = self.done or (self._last is None and self._wire.framing != "json")


def _hollow() -> BackendTruncated:
    return BackendTruncated("The backend's response is empty.", code="upstream_invalid_response")
