"""Decodes the bytes of a response, either a stream of chunks or one JSON object, into events."""

from functools import partial
from typing import Final

import msgspec

from adapters.openai_chat.backend.chunk import ChunkReader
from adapters.openai_chat.backend.completion_fast_path import read_plain
from adapters.openai_chat.backend.delta_fast_path import DeltaFastPath
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.core.notices import Notice
from gateway.core.state_rule import StateRule
from gateway.framing.sse import SSEDecoder
from gateway.wires.json_body import EventJson, decode_body
from gateway.wires.stream_or_json import StreamOrJson
from gateway.wires.whole_response import EVENTS_PER_RESPONSE, response_too_large

_DONE: Final = b"[DONE]"


class ChatDecoder(StreamOrJson):
    """Decodes one response. `stops` are the client's stop sequences; `passes`: the client speaks this dialect, so that
    it gets the fields which no event expresses; `keeps` are those that the gateway keeps. `finish_optional`: a stream
    may end without a finish reason."""

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
        self._stream = partial(_Stream, seed, stops, passes, keeps, max_event, finish_optional)
        self._document = partial(_Whole, seed, stops, passes, keeps, EVENTS_PER_RESPONSE * max_event)


class _Stream:
    """Reads server-sent events with one chunk each, ended by `[DONE]`, or by the end of bytes after a finish reason."""

    def __init__(
        self,
        seed: int,
        stops: tuple[str, ...],
        passes: bool,
        keeps: StateRule | None,
        max_event: int,
        finish_optional: bool,
    ) -> None:
        self.done = False
        self._finish_optional = finish_optional
        self._reader = ChunkReader(seed, stops, passes=passes, keeps=keeps)
        self._sse = SSEDecoder(max_event)
        self._json = EventJson()
        self._fast_path = DeltaFastPath(self._reader.more)

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            chunks = iter(self._sse.feed(data))
            while not self.done and (chunk := self._fast_path.read(chunks, events)) is not None:
                self._guarded(chunk, events)
            if self.done and next(chunks, None) is not None:
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
            if tail is not None:
                self._tail(tail, events)
            if not self._reader.finished:
                raise self._incomplete("The backend's stream ended before the response was complete.", tail)
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def _event(self, data: bytes, events: list[Event]) -> None:
        if data.strip() == _DONE:
            self.done = True
            if not self._reader.finished:
                if not self._finish_optional or self._reader.empty:
                    raise self._incomplete("The backend ended its stream without a finish reason.")
                self._json.end(events)
                self._reader.finish(events)
        elif data.strip():
            chunk = self._json.read(data, events)
            read = self._reader.chunk(chunk)
            self._fast_path.learn(data, chunk, read)
            events += read
            if self._reader.finished:
                self._json.end(events)

    def _incomplete(self, message: str, half: bytes | None = None) -> BackendTruncated:
        """Create the error for an incomplete response: `upstream_invalid_response` when no part of a response or event
        arrived."""
        if self._reader.empty and half is None:
            error = BackendTruncated("The backend's response contains no choice.", code="upstream_invalid_response")
        else:
            error = BackendTruncated(message)
        error.words = self._reader.words
        return error

    def _guarded(self, data: bytes, events: list[Event]) -> None:
        """Read one event. The response is complete after the finish reason, so that a later fault cannot fail it."""
        finished = self._reader.finished
        try:
            self._event(data, events)
        except BackendError as error:
            if not finished:
                if isinstance(error, BackendProtocolError):
                    error.notices = (*error.notices, malformed_event(data))
                raise
            detail = "an error or a malformed event after the end of the response"
            events.append(Notice("backend", "ignored", "LATE_FAULT", detail, level="warning"))

    def _tail(self, tail: bytes, events: list[Event]) -> None:
        """Read an event that lacks its blank line: a whole one counts, and half of one shows that the bytes were cut
        off."""
        try:
            self._event(tail, events)
        except BackendProtocolError:
            if self._reader.finished:
                detail = "an incomplete event after the end of the response"
                events.append(Notice("backend", "dropped", "TAIL_BROKEN", detail, level="warning"))


class _Whole(msgspec.Struct):
    """Reads one JSON object when its bytes have ended."""

    seed: int
    stops: tuple[str, ...]
    passes: bool
    keeps: StateRule | None
    limit: int
    body: bytearray = msgspec.field(default_factory=bytearray)
    done: bool = False

    def feed(self, data: bytes) -> list[Event]:
        self.body += data
        if len(self.body) > self.limit:
            raise response_too_large(self.limit)
        return []

    def close(self) -> list[Event]:
        body = bytes(self.body)
        events = read_plain(body) if self.passes else None
        return self._read(body) if events is None else events

    def _read(self, body: bytes) -> list[Event]:
        answer, notices = decode_body(body)
        if isinstance(answer, list) and len(answer) > 1:
            message = f"The backend sent {len(answer)} responses instead of one."
            raise BackendProtocolError(message, code="upstream_invalid_response")
        if isinstance(answer, list) and answer:
            answer = answer[0]
        reader = ChunkReader(self.seed, self.stops, passes=self.passes, keeps=self.keeps)
        return [*notices, *reader.completion(answer)]
