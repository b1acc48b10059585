"""Converts the JSON objects of a response (chunks, or one whole response) into events."""

from typing import Final

import msgspec

from adapters.gemini.chunk_fast_path import PlainChunk, PlainUsage
from adapters.gemini.failure import reported_failure
from adapters.gemini.finish import decode_block, decode_finish
from adapters.gemini.usage import decode_usage
from gateway.core.conversation import EMPTY, Json, JsonObject, Text
from gateway.core.errors import BackendError, InvalidToolCall
from gateway.core.events import (
    Event,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    Scope,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Level, Notice
from gateway.dialects.gemini.parts import DATA, SIGNATURE, read_part, state_of

_RESPONSE_KEYS: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "promptFeedback"})
_CANDIDATE_KEYS: Final = frozenset({"content", "finishReason", "index", "finishMessage"})
_TEXT_KEYS: Final = frozenset({"text", "thought"})
_CALL_KEYS: Final = frozenset({"functionCall", SIGNATURE})
_SHOWN: Final = frozenset({"executableCode", "codeExecutionResult"})
_DERIVED_ID: Final = "call_{seed}_{index}"


class ChunkReader:
    """Reads one response. `finished` is true once the finish reason has arrived; after that only usage counts,
    and once it has arrived, too, the response is `complete`. `reads_plain` is true between the first chunk and the
    finish reason.

    `seed` makes the ids of calls without one differ from those of earlier answers. `passes`: the client speaks this
    dialect, so that it gets the fields and the parts which no event expresses.
    """

    def __init__(self, seed: int, *, passes: bool) -> None:
        self.empty = True
        self.finished = False
        self.complete = False
        self.reads_plain = False
        self._seed = seed
        self._passes = passes
        self._started = False
        self._calls = 0
        self._usage: dict[str, Json] | PlainUsage | None = None
        self._noted: set[str] = set()

    def chunk(self, chunk: Json) -> list[Event]:
        """Return the events of one chunk. Raises BackendError, which keeps the events before the fault."""
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
        return events

    def plain(self, chunk: PlainChunk) -> TextDelta:
        """Return the event of a chunk that is nothing but text, while `reads_plain`."""
        self.empty = False
        if chunk.usage_metadata is not None:
            self._usage = chunk.usage_metadata
        return TextDelta(chunk.text)

    def late(self, events: list[Event]) -> None:
        """Report an event after the last one of a complete response, which is not read."""
        self._note(events, "ignored", "LATE_EVENT", "the backend sent more data after it had ended its stream")

    def _read(self, chunk: dict[str, Json], events: list[Event]) -> None:
        candidates = chunk.get("candidates") or []
        if not isinstance(candidates, list):
            raise invalid_event("candidates is not an array")
        if not candidates and not (chunk.keys() & _RESPONSE_KEYS):
            self._note(events, "ignored", "UNKNOWN_EVENT", "an event that is not a chunk of a response")
            return
        if not self._started:
            self._started = True
            events.append(ResponseStart(_text(chunk.get("responseId")), _text(chunk.get("modelVersion"))))
        self._unknown(events, "response", chunk, _RESPONSE_KEYS)
        for candidate in candidates:
            self._candidate(candidate, events)
        self._feedback(chunk.get("promptFeedback"), events)
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            self._usage = usage
            self.complete = self.finished
        if self.finished:
            self._report_usage(events)
        self.reads_plain = not self.finished

    def _report_usage(self, events: list[Event]) -> None:
        """Report the newest counts: the API repeats them in every chunk, and those of a chunk include the earlier."""
        usage, self._usage = self._usage, None
        if isinstance(usage, PlainUsage):
            usage = msgspec.to_builtins(usage)
        if usage is not None:
            events.append(decode_usage(usage, passes=self._passes))

    def _candidate(self, candidate: Json, events: list[Event]) -> None:
        if not isinstance(candidate, dict):
            raise invalid_event("a candidate is not an object")
        if candidate.get("index") not in (0, None):
            self._note(events, "dropped", "OTHER_CHOICE", "a candidate that was not requested")
            return
        self.empty = False
        parts = self._parts(candidate.get("content"))
        if self.finished:
            if any(part.keys() - {"text"} or part.get("text") for part in parts):
                self._note(events, "dropped", "LATE_CONTENT", "content after the finish reason")
            if candidate.get("finishReason"):
                self._note(events, "ignored", "LATE_EVENT", "a second finish reason")
            return
        self._unknown(events, "choice", candidate, _CANDIDATE_KEYS)
        for part in parts:
            self._part(part, events)
        word = candidate.get("finishReason")
        if isinstance(word, str) and word:
            events.append(decode_finish(word, called=self._calls > 0))
            self.finished = True
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

    def _part(self, part: dict[str, Json], events: list[Event]) -> None:
        if "functionCall" in part:
            self._call(part, events)
        elif isinstance(text := part.get("text"), str):
            self._spoken(text, part, events)
        elif self._passes:
            events.append(PassthroughFields("event", part))
        elif part.keys() & _SHOWN:
            block = read_part(part, 0)
            if isinstance(block, Text) and block.text:
                events.append(TextDelta(block.text))
        elif SIGNATURE in part and not part.keys() & DATA:
            events.append(ReasoningEnd(state_of(part)))
        else:
            self._note(events, "dropped", "PART_UNKNOWN", "a content part of an unknown type")

    def _spoken(self, text: str, part: dict[str, Json], events: list[Event]) -> None:
        state = state_of(part)
        if not text:
            if state:
                events.append(ReasoningEnd(state))
            return
        self._unknown(events, "delta", part, _TEXT_KEYS)
        events.append(ReasoningDelta(text) if part.get("thought") is True else TextDelta(text))
        if state and not self._passes:
            events.append(ReasoningEnd(state))

    def _call(self, part: dict[str, Json], events: list[Event]) -> None:
        call = part["functionCall"]
        if not isinstance(call, dict):
            raise invalid_event("functionCall is not an object")
        name, arguments = _text(call.get("name")), call.get("args")
        if name is None:
            raise InvalidToolCall("The backend sent a call without the name of a function.")
        if arguments is not None and not isinstance(arguments, dict):
            raise invalid_event("args is not an object")
        index = self._calls
        self._calls += 1
        identity = _text(call.get("id")) or _DERIVED_ID.format(seed=self._seed, index=index)
        self._unknown(events, "delta", part, _CALL_KEYS)
        text = msgspec.json.encode(arguments or {}).decode()
        events += (
            ToolCallStart(index, identity, name, extra=state_of(part)),
            ToolCallDelta(index, text),
            ToolCallEnd(index),
        )

    def _feedback(self, feedback: Json, events: list[Event]) -> None:
        """A prompt that was blocked has no candidate."""
        word = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if isinstance(word, str) and word and self.empty:
            events.append(decode_block(word))
            self.empty = False
            self.finished = True

    def _unknown(self, events: list[Event], scope: Scope, fields: JsonObject, known: frozenset[str]) -> None:
        """Report the fields that no event expresses: to a client of this dialect, who can read them."""
        if self._passes and (unknown := _others(fields, known)):
            events.append(PassthroughFields(scope, unknown))

    def _note(self, events: list[Event], action: Action, rule: str, detail: str, level: Level = "warning") -> None:
        """Report each rule once, because a backend that breaks a rule breaks it in every chunk."""
        if rule not in self._noted:
            self._noted.add(rule)
            events.append(Notice("backend", action, rule, detail, level=level))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _others(fields: JsonObject, known: frozenset[str]) -> JsonObject:
    """Return the fields that are not known, without those that are null."""
    if fields.keys() <= known:
        return EMPTY
    return {name: value for name, value in fields.items() if name not in known and value is not None}
