"""Reads the pieces of information from one decoded event of a wire."""

from typing import Final

import msgspec

from adapters.text.backend.event_fast_path import EventFastPath
from adapters.text.backend.paths import Path, look_up, parse_path
from adapters.text.backend.wire import Wire
from gateway.core.conversation import Json
from gateway.core.events import Reason, UsageReport
from gateway.core.malformed_event import invalid_event
from gateway.wires.token_count import token_count

REASONS: Final[dict[str, Reason]] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "word", "stop_sequence", "stop_token", "none"), "stop"),
    **dict.fromkeys(("length", "limit", "stopped_limit", "max_tokens", "max_length", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "safety"), "content_filter"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool_calls"),
}
# Reporting one of these as a stop would report a failure as a success.
FAILURES: Final = frozenset({"error", "abort", "aborted", "cancelled", "canceled", "timeout"})


class Piece(msgspec.Struct, frozen=True):
    """The content of one event. `word`: the finish reason, or None while the response is not complete; `stopped_by`:
    the stop sequence that ended it. `known`: the event has at least one of the places that the wire names."""

    text: str = ""
    reasoning: str = ""
    word: str | None = None
    stopped_by: str = ""
    usage: UsageReport | None = None
    error: Json = None
    known: bool = True


class Reader:
    """Reads a wire, with its paths parsed once. `plain` reads the events that hold only text."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.plain = EventFastPath(wire)
        self._text = [parse_path(path) for path in wire.text]
        self._reasoning = [parse_path(path) for path in wire.reasoning]
        self._finish = [(path, parse_path(path)) for path in wire.finish]
        self._error = [parse_path(path) for path in wire.error]
        self._hidden = _optional(wire.hidden)
        self._final = _optional(wire.final)
        self._stopped_by = [] if wire.stopped_by is None else [parse_path(wire.stopped_by)]
        usage = wire.usage
        self._usage = [_optional(path) for path in (usage.prompt, usage.completion, usage.total)]
        self._places = [*self._text, *self._reasoning, *(path for _, path in self._finish)]
        self._places += [path for path in (self._hidden, self._final, *self._usage) if path is not None]
        self._reasons: dict[str, Reason] = {**REASONS, **{word.lower(): kind for word, kind in wire.reasons.items()}}

    def read(self, event: Json) -> Piece:
        """Reads the event. A place whose value has an unexpected type counts as empty, but for that of the text or of
        the reasoning. Raises BackendProtocolError."""
        error = next((found for path in self._error if (found := look_up(event, path))), None) if self._error else None
        if error is not None and isinstance(event, dict):
            return Piece(error=error)
        hidden = self._hidden is not None and bool(look_up(event, self._hidden))
        word = self._word(event)
        return Piece(
            "" if hidden else _content(event, self._text),
            _content(event, self._reasoning),
            word,
            _first_text(event, self._stopped_by),
            self._counts(event) if word is not None or not self.wire.final else None,
            known=any(look_up(event, path) is not None for path in self._places),
        )

    def takes(self, event: Json) -> bool:
        """Returns whether the value can be an event of this wire."""
        return isinstance(event, dict) or () in self._text

    def reason(self, word: str) -> Reason | None:
        """Returns the finish reason for the backend's word, or None for an unknown word."""
        return self._reasons.get(word.lower())

    def _word(self, event: Json) -> str | None:
        if self.wire.framing == "json":
            return self._finish_word(event) or "stop"
        if self._final is None:
            return self._finish_word(event)
        return (self._finish_word(event) or "stop") if look_up(event, self._final) else None

    def _finish_word(self, event: Json) -> str | None:
        for name, path in self._finish:
            found = look_up(event, path)
            if found is True:
                return name
            if isinstance(found, str) and found:
                return found
        return None

    def _counts(self, event: Json) -> UsageReport | None:
        counts = [None if path is None else token_count(look_up(event, path)) for path in self._usage]
        if all(count is None for count in counts):
            return None
        prompt, completion, total = counts
        if total is None and prompt is not None and completion is not None:
            total = prompt + completion
        return UsageReport(prompt, completion, total)


def _optional(path: str | None) -> Path | None:
    return None if path is None else parse_path(path)


def _content(event: Json, paths: list[Path]) -> str:
    """Returns the text at the first of the places that has one. Raises BackendProtocolError for a value of another type
    in its place."""
    broken = False
    for path in paths:
        found = look_up(event, path)
        if isinstance(found, str):
            return found
        # The empty path is the event itself, whose text then stands at another one.
        broken = broken or (found is not None and path != ())
    if broken:
        raise invalid_event("the text in it is not text")
    return ""


def _first_text(event: Json, paths: list[Path]) -> str:
    return next((found for path in paths if isinstance(found := look_up(event, path), str)), "")
