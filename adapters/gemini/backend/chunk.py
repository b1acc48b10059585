"""Converts the JSON objects of a response (chunks, or one whole response) into events."""

from typing import Final

import msgspec

from adapters.gemini.backend.calls import CallReader
from adapters.gemini.backend.chunk_fast_path import OwnChunk, PlainChunk, PlainUsage
from adapters.gemini.backend.failure import reported_failure
from adapters.gemini.finish import decode_block, decode_finish
from adapters.gemini.own_chunk import without_parts
from adapters.gemini.partial_arguments import is_piece
from adapters.gemini.parts import DATA, SIGNATURE, read_part, state_of
from adapters.gemini.usage import decode_usage
from gateway.core.conversation import Json, JsonObject, Text
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
)
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Level, Notice, NoticeRule, Reported
from gateway.wires.event_stream import StreamEnd
from gateway.wires.json_body import text_in

_RESPONSE_KEYS: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "promptFeedback"})
_NO_CANDIDATE: Final = "The backend's response contains no candidate."
_SHOWN: Final = frozenset({"executableCode", "codeExecutionResult"})
_EMPTY_TEXT: Final[JsonObject] = {"text": ""}


class ChunkReader:
    """Reads one response. `finished` is true once the finish reason has arrived; after that only usage counts, and once
    it has arrived, too, the response is `done`. `calls` are those that have begun. `reads_plain` is true between
    the first chunk, for a client of this dialect (`passes`) the first output, and the finish reason.

    `seed` makes the ids of calls without one differ from those of earlier answers. A client of this dialect gets each
    chunk as it was written: its fields first, without the parts, then one part after the other, whole or as an event
    behind its other fields.
    """

    def __init__(self, seed: int, *, passes: bool) -> None:
        self.empty = True
        self.finished = False
        self.done = False
        self.reads_plain = False
        self.passes = passes
        self._started = False
        self.calls = CallReader(seed, passes=passes)
        # The events of a client of this dialect that wait for the first output: until then a failure can be a status.
        self._opening: list[Event] | None = [] if passes else None
        self._usage: dict[str, Json] | PlainUsage | None = None
        self._reported = Reported()

    @property
    def progress(self) -> int:
        """The pieces of calls so far, of which only the whole call is reported."""
        return self.calls.pieces

    def event(self, chunk: Json) -> list[Event]:
        """Returns the events of one chunk. Raises BackendError, which keeps the events before the fault."""
        if not isinstance(chunk, dict):
            raise invalid_event("it is not an object")
        if (error := chunk.get("error")) is not None:
            raise reported_failure(error)
        events: list[Event] = []
        try:
            self._read(chunk, events)
        except BackendError as fault:
            fault.keep(events)
            raise
        return events if self._opening is None else self._behind_opening(self._opening, events)

    def _behind_opening(self, opening: list[Event], events: list[Event]) -> list[Event]:
        opening += events
        if not any(map(_is_output, events)):
            self.reads_plain = False
            return []
        self._opening = None
        return opening

    def plain(self, chunk: PlainChunk) -> TextDelta:
        """Returns the event of a chunk that is nothing but text, while `reads_plain`."""
        self.empty = False
        if chunk.usage_metadata is not None:
            self._usage = chunk.usage_metadata
        return TextDelta(chunk.text)

    def own(self, chunk: OwnChunk) -> tuple[Event, Event]:
        """Returns the events of such a chunk for a client of this dialect, while `reads_plain`."""
        if isinstance(usage := chunk.fields.get("usageMetadata"), dict):
            self._usage = usage
        return PassthroughFields("response", chunk.fields), TextDelta(chunk.text)

    def end(self, where: StreamEnd) -> list[Event]:
        """Raises BackendTruncated: the finish reason alone completes a stream. `upstream_invalid_response` when no part
        of a response or event arrived."""
        if self.empty and where == "bytes":
            raise BackendTruncated(_NO_CANDIDATE, code="upstream_invalid_response")
        raise BackendTruncated("The backend's stream ended before the response was complete.")

    def late(self) -> list[Event]:
        """Returns the report of an event after the last one of a complete response, which is not read."""
        events: list[Event] = []
        self._note(events, "ignored", "LATE_EVENT", "the backend sent more data after it had ended its stream")
        return events

    def _read(self, chunk: dict[str, Json], events: list[Event]) -> None:
        candidates = chunk.get("candidates") or []
        if not isinstance(candidates, list):
            raise invalid_event("candidates is not an array")
        if not candidates and not (chunk.keys() & _RESPONSE_KEYS):
            self._note(events, "ignored", "UNKNOWN_EVENT", "an event that is not a chunk of a response")
            return
        if not self._started:
            self._started = True
            events.append(ResponseStart(text_in(chunk.get("responseId")), text_in(chunk.get("modelVersion"))))
        if self.passes:
            events.append(PassthroughFields("response", without_parts(chunk)))
        for candidate in candidates:
            self._candidate(candidate, events)
        self._feedback(chunk.get("promptFeedback"), events)
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            self._usage = usage
            self.done = self.finished
        if self.finished:
            self._report_usage(events)
        self.reads_plain = not self.finished

    def _report_usage(self, events: list[Event]) -> None:
        """Reports the newest counts: the API repeats them in every chunk, and those of a chunk include the earlier."""
        usage, self._usage = self._usage, None
        if isinstance(usage, PlainUsage):
            usage = msgspec.to_builtins(usage)
        if usage is not None:
            events.append(decode_usage(usage))

    def _candidate(self, candidate: Json, events: list[Event]) -> None:
        if not isinstance(candidate, dict):
            raise invalid_event("a candidate is not an object")
        if candidate.get("index") not in (0, None):
            self._note(events, "dropped", "OTHER_CHOICE", "a candidate that was not requested")
            return
        self.empty = False
        parts = self._parts(candidate.get("content"))
        if self.finished and self.passes:
            events += [PassthroughFields("event", part) for part in parts]
            return
        if self.finished:
            if any(part.keys() - {"text"} or part.get("text") for part in parts):
                self._note(events, "dropped", "LATE_CONTENT", "content after the finish reason")
            if candidate.get("finishReason"):
                self._note(events, "ignored", "LATE_EVENT", "a second finish reason")
            return
        for part in parts:
            if self.passes:
                self._own_part(part, events)
            else:
                self._part(part, events)
        word = candidate.get("finishReason")
        if isinstance(word, str) and word:
            self._finish(word, events)
        elif word:
            raise invalid_event("the finish reason is not text")

    def _parts(self, content: Json) -> list[dict[str, Json]]:
        if content is None:
            return []
        if not isinstance(content, dict):
            raise invalid_event("the content of a candidate is not an object")
        parts = content.get("parts")
        if parts is not None and not isinstance(parts, list):
            raise invalid_event("parts is not an array")
        found = [part for part in parts or [] if isinstance(part, dict)]
        if len(found) < len(parts or []):
            raise invalid_event("a part is not an object")
        return found

    def _finish(self, word: str, events: list[Event]) -> None:
        finish, notice = decode_finish(word, called=self.calls.count > 0, passes=self.passes)
        self.calls.close(finish, events)
        events += [finish] if notice is None else [notice, finish]
        self.finished = True

    def complete(self) -> list[Event]:
        """Returns the end of a whole response without a finish reason, which a client of this dialect gets as it is.
        Raises BackendTruncated for any other client, and BackendProtocolError if it is no response."""
        if not self._started or (self.empty and not self.passes):
            raise BackendProtocolError(_NO_CANDIDATE, code="upstream_invalid_response")
        if not self.passes:
            raise BackendTruncated("The backend's response has no finish reason.")
        self.finished = True
        detail = "a complete response has no finish reason"
        events: list[Event] = [Notice("backend", "added", "FINISH_REASON_MISSING", detail, level="warning")]
        self._report_usage(events)
        return [*(self._opening or ()), *events, Finish("tool_calls" if self.calls.count else "stop")]

    def _own_part(self, part: dict[str, Json], events: list[Event]) -> None:
        """Reports a part to a client of this dialect. Calls in pieces stay in their pieces."""
        text, call = part.get("text"), part.get("functionCall")
        # Most parts are nothing but text.
        if len(part) == 1 and isinstance(text, str) and text:
            events.append(TextDelta(text))
        elif isinstance(call, dict) and text_in(call.get("name")) and not is_piece(call):
            self.calls.read(part, events)
        elif call is None and isinstance(text, str) and text and len(part.keys() & DATA) == 1:
            thought = part.get("thought") is True
            others = {
                name: value for name, value in part.items() if name != "text" and not (thought and name == "thought")
            }
            if others:
                events.append(PassthroughFields("delta", others))
            events.append(ReasoningDelta(text) if thought else TextDelta(text))
        else:
            called = self.calls.passed(call) if isinstance(call, dict) else ""
            events.append(PassthroughFields("event", part, call=called))

    def _part(self, part: dict[str, Json], events: list[Event]) -> None:
        if "functionCall" in part:
            self.calls.read(part, events)
        elif isinstance(text := part.get("text"), str):
            self._spoken(text, part, events)
        elif part.keys() & _SHOWN:
            block = read_part(part, 0)
            if isinstance(block, Text) and block.text:
                events.append(TextDelta(block.text))
        elif SIGNATURE in part and not part.keys() & DATA:
            events.append(ReasoningEnd(state_of(part)))
        else:
            self._note(events, "dropped", "PART_UNKNOWN", "a content part of an unknown type")

    def _spoken(self, text: str, part: dict[str, Json], events: list[Event]) -> None:
        if text:
            events.append(ReasoningDelta(text) if part.get("thought") is True else TextDelta(text))
        if state := state_of(part):
            events.append(ReasoningEnd(state))

    def _feedback(self, feedback: Json, events: list[Event]) -> None:
        """A prompt that was blocked has no candidate."""
        word = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if isinstance(word, str) and word and self.empty:
            events.append(decode_block(word, passes=self.passes))
            self.empty = False
            self.finished = True

    def _note(
        self, events: list[Event], action: Action, rule: NoticeRule, detail: str, level: Level = "warning"
    ) -> None:
        """Reports each rule once, because a backend that breaks a rule breaks it in every chunk."""
        if self._reported.is_new(rule):
            events.append(Notice("backend", action, rule, detail, level=level))


def _is_output(event: Event) -> bool:
    """Whether the answer has begun for its client."""
    if type(event) is PassthroughFields:
        return event.scope == "event" and event.fields != _EMPTY_TEXT
    return type(event) is not ResponseStart and type(event) is not Notice
