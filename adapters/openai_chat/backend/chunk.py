"""Converts the JSON objects of a response (chunks, or one whole completion) into events."""

from collections.abc import Callable
from typing import Final

from adapters.openai.usage import decode_usage
from adapters.openai_chat.backend.failure import message_of, minimax_failure, reported_failure
from adapters.openai_chat.finish import decode_finish
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendProtocolError, BackendTruncated
from gateway.core.events import (
    Event,
    ReasoningDelta,
    ReasoningField,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
)
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Notice, NoticeRule, Reported
from gateway.core.state_rule import StateRule
from gateway.response.passthrough import Passthrough
from gateway.wires.call_tracker import CallTracker
from gateway.wires.event_stream import StreamEnd
from gateway.wires.json_body import text_in

_RESPONSE_KEYS: Final = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})
_CHOICE_KEYS: Final = frozenset({"index", "delta", "message", "finish_reason"})
# Where a choice names the stop sequence that ended it: vLLM in the first field, SGLang in the second.
_STOP_FIELDS: Final = ("stop_reason", "matched_stop")
_REASONING_KEYS: Final = frozenset({"reasoning_content", "reasoning"})
_DELTA_KEYS: Final = frozenset({"role", "content", "reasoning_content", "reasoning", "tool_calls", "function_call"})


class ChunkReader:
    """Reads one response. `empty` is true until a choice has arrived. `finished` is true once the finish reason has
    arrived; after that only usage counts, up to the mark of the end (`done`). `words` is the message of the last event
    that is no chunk: if the response then stays incomplete, it most likely says why. `passes`: the client speaks this
    dialect, so that it gets the fields which no event expresses; `keeps` are those that the gateway keeps.
    `finish_optional`: the mark may come without a finish reason."""

    def __init__(
        self,
        seed: int,
        stops: tuple[str, ...] = (),
        *,
        passes: bool = True,
        keeps: StateRule | None = None,
        finish_optional: bool = False,
    ) -> None:
        self.empty = True
        self.finished = False
        self.done = False
        self._finish_optional = finish_optional
        self.words = ""
        self._reason = ""
        self._started = False
        self._reported = Reported()
        self._passthrough = Passthrough(passes, keeps)
        self._seed = seed
        self._stops = stops
        self._calls: CallTracker | None = None
        self._spoken = False
        self._in_messages = False

    def event(self, chunk: Json) -> list[Event]:
        """Returns the events of one chunk. Raises BackendError."""
        events, choices = self._open(chunk)
        for choice in choices:
            self._choice(choice, events)
        if (usage := _usage_of(chunk)) is not None:
            events.append(decode_usage(usage))
        return events

    def more(self, index: int) -> Callable[[str], ToolCallDelta]:
        """Returns a function that makes deltas with more arguments for a started call, for use by a fast path."""
        return self._tracker().more(index)

    def end(self, where: StreamEnd) -> list[Event]:
        """Returns the events that complete a stream without a finish reason, where it may lack. Raises BackendTruncated
        for any other, with `upstream_invalid_response` when no part of a response or event arrived."""
        events: list[Event] = []
        if where == "mark" and self._finish_optional and not self.empty:
            self._complete(events)
            return events
        if self.empty and where in ("mark", "bytes"):
            error = BackendTruncated("The backend's response contains no choice.", code="upstream_invalid_response")
        elif where == "mark":
            error = BackendTruncated("The backend ended its stream without a finish reason.")
        else:
            error = BackendTruncated("The backend's stream ended before the response was complete.")
        error.words = self.words
        raise error

    def late(self) -> list[Event]:
        """Returns the report of data behind the end of the stream."""
        events: list[Event] = []
        self._note(events, "ignored", "LATE_EVENT", "the backend sent more data after it had ended its stream")
        return events

    def completion(self, answer: Json) -> list[Event]:
        """Returns the events of a whole response. Raises BackendError."""
        events, choices = self._open(answer)
        if not choices:
            empty = BackendProtocolError("The backend's response contains no choice.", code="upstream_invalid_response")
            empty.words = self.words
            raise empty
        for choice in choices:
            self._choice(choice, events, whole=True)
        if not self.finished:
            self._complete(events)
        if (usage := _usage_of(answer)) is not None:
            events.append(decode_usage(usage))
        return events

    def _complete(self, events: list[Event]) -> None:
        """Complete a response that ended without a finish reason."""
        self._note(events, "added", "FINISH_REASON_MISSING", "a response that is complete has no finish reason")
        self._finish("stop", None, events)

    def _open(self, chunk: Json) -> tuple[list[Event], list[Json]]:
        if not isinstance(chunk, dict):
            raise invalid_event("it is not an object")
        if (error := chunk.get("error")) is not None:
            raise reported_failure(error)
        if chunk.get("object") == "error":
            raise reported_failure(chunk)
        events: list[Event] = []
        choices = chunk.get("choices")
        if not choices and (failure := minimax_failure(chunk.get("base_resp"))):
            raise failure
        if choices is None:
            if not isinstance(chunk.get("usage"), dict):
                self.words = message_of(chunk) or self.words
                self._note(events, "ignored", "UNKNOWN_EVENT", "an event that is not a chunk of a response")
                return events, []
            choices = []
        if not isinstance(choices, list):
            raise invalid_event("choices is not an array")
        if not self._started:
            self._started = True
            events.append(ResponseStart(text_in(chunk.get("id")), text_in(chunk.get("model"))))
        if not _RESPONSE_KEYS.issuperset(chunk) and (unknown := _unknown_fields(chunk, _RESPONSE_KEYS)):
            events += self._passthrough.fields("response", unknown)
        return events, choices

    def _choice(self, choice: Json, events: list[Event], *, whole: bool = False) -> None:
        if not isinstance(choice, dict):
            raise invalid_event("a choice is not an object")
        if choice.get("index") not in (0, None):
            self._note(events, "dropped", "OTHER_CHOICE", "a choice that was not requested")
            return
        delta = choice.get("message" if whole else "delta")
        if delta is None:
            delta = self._misplaced(choice, events, whole)
        if not isinstance(delta, dict):
            raise invalid_event("the delta of a choice is not an object")
        self.empty = False
        if self.finished:
            self._after_finish(delta, choice.get("finish_reason"), events)
            return
        if not _CHOICE_KEYS.issuperset(choice) and (unknown := _unknown_fields(choice, _CHOICE_KEYS)):
            events += self._passthrough.fields("choice", unknown)
        self._delta(delta, events, whole)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish(reason, self._stop(choice), events)
        elif reason:
            raise invalid_event("the finish reason is not text")

    def _misplaced(self, choice: dict[str, Json], events: list[Event], whole: bool) -> Json:
        """Returns the message of a choice that a server sends in place of a delta, or the other way round. Some send at
        the end of a stream once more, as a message, what they have sent in deltas."""
        other = choice.get("delta" if whole else "message")
        if other is None:
            return {}
        if not self._in_messages and (self._spoken or self._calls is not None):
            self._note(events, "ignored", "MESSAGE_IGNORED", "a whole message behind the deltas of a stream")
            return {}
        self._in_messages = True
        return other

    def _after_finish(self, delta: dict[str, Json], reason: Json, events: list[Event]) -> None:
        """Reports content or another reason after the finish reason, which some backends repeat beside the usage."""
        if any(value for field, value in delta.items() if field != "role"):
            self._note(events, "dropped", "LATE_CONTENT", "content after the finish reason")
        if reason not in (None, "", self._reason):
            self._note(events, "ignored", "LATE_EVENT", "a second finish reason that differs from the first")

    def _delta(self, delta: dict[str, Json], events: list[Event], whole: bool) -> None:
        refusal = None if self._passthrough.passes else text_in(delta.get("refusal"))
        known = _DELTA_KEYS if refusal is None else _DELTA_KEYS | {"refusal"}
        unknown = EMPTY if known.issuperset(delta) else _unknown_fields(delta, known)
        if "reasoning" in delta and self._passthrough.passes:
            unknown = _with_second_name(delta, unknown)
        if unknown:
            events += self._passthrough.fields("delta", unknown)
        if refusal is not None:
            detail = "the refusal of the model is sent as its text"
            self._note(events, "changed", "REFUSAL_AS_TEXT", detail)
            events.append(TextDelta(refusal))
            self._spoken = True
        if not _REASONING_KEYS.isdisjoint(delta):
            self._reasoning(delta, events)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._spoken = True
                events.append(TextDelta(content))
        elif content is not None:
            self._parts(content, events)
        if (calls := delta.get("tool_calls")) is not None:
            events += self._tracker().feed(calls, whole=whole)
        if (call := delta.get("function_call")) is not None:
            events += self._tracker().feed([{"index": "function_call", "function": call}])

    def _reasoning(self, delta: dict[str, Json], events: list[Event]) -> None:
        """Reads the reasoning under its name."""
        name: ReasoningField = "reasoning_content" if delta.get("reasoning_content") else "reasoning"
        reasoning = delta.get(name)
        if isinstance(reasoning, str):
            if reasoning:
                events.append(ReasoningDelta(reasoning, name))
        elif reasoning is not None:
            self._note(events, "dropped", "PART_UNKNOWN", "reasoning that is not text")

    def _tracker(self) -> CallTracker:
        """Creates the tracker on first use, because most responses make no call."""
        if self._calls is None:
            self._calls = CallTracker(self._seed)
        return self._calls

    def _parts(self, content: Json, events: list[Event]) -> None:
        """Reads content that is an array of parts, as some providers send it to stream reasoning beside text."""
        if not isinstance(content, list):
            raise invalid_event("content is neither text nor an array")
        for part in content:
            match part:
                case {"type": "text", "text": str(text)}:
                    self._spoken = self._spoken or bool(text)
                    events += [TextDelta(text)] if text else []
                case {"type": "thinking", "thinking": str() | [*_] as thinking}:
                    self._thought(thinking, events)
                case _:
                    self._note(events, "dropped", "PART_UNKNOWN", "a content part of an unknown type")

    def _thought(self, thinking: str | list[Json], events: list[Event]) -> None:
        """Reads the thinking of a part: a text, or parts of text in turn."""
        parts: list[Json] = [{"text": thinking}] if isinstance(thinking, str) else thinking
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str):
                self._note(events, "dropped", "PART_UNKNOWN", "reasoning that is not text")
            elif text:
                events.append(ReasoningDelta(text))

    def _stop(self, choice: dict[str, Json]) -> str | None:
        """Returns the client's stop sequence that ended the response, if the choice names it."""
        for field in _STOP_FIELDS if self._stops else ():
            stop = choice.get(field)
            if isinstance(stop, str) and stop and stop in self._stops:
                return stop
        return None

    def _finish(self, reason: str, stop: str | None, events: list[Event]) -> None:
        finish, notice = decode_finish(reason, stop)
        self._reason = reason
        if notice is not None:
            events.append(notice)
        if self._calls is not None:
            events += self._calls.close(self._spoken)
        events.append(finish)
        self.finished = True

    def _note(self, events: list[Event], action: Action, rule: NoticeRule, detail: str) -> None:
        """Reports each rule once, because a backend that breaks a rule breaks it in every chunk."""
        if self._reported.is_new(rule):
            events.append(Notice("backend", action, rule, detail, level="warning"))


def _unknown_fields(fields: dict[str, Json], known: frozenset[str]) -> JsonObject:
    """Returns the fields that are not known, without those that are null."""
    return {key: value for key in fields if key not in known and (value := fields[key]) is not None}


def _with_second_name(delta: dict[str, Json], unknown: JsonObject) -> JsonObject:
    """Returns the unknown fields with `reasoning` where it stands beside `reasoning_content`, which is the one read."""
    again = delta["reasoning"]
    return {**unknown, "reasoning": again} if again and delta.get("reasoning_content") else unknown


def _usage_of(chunk: Json) -> dict[str, Json] | None:
    """Returns the usage of a chunk. Some providers have it at another place of a stream: Groq in `x_groq` of its last
    chunk, Kimi in its last choice (the API references of both)."""
    if not isinstance(chunk, dict):
        return None
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        return usage
    choices = chunk.get("choices")
    last = choices[-1] if isinstance(choices, list) and choices else None
    for holder in (chunk.get("x_groq"), last):
        if isinstance(holder, dict) and isinstance(usage := holder.get("usage"), dict):
            return usage
    return None
