"""A chunk that differs from the last one in nothing but its text in, its events out, without reading the rest again.

Backends repeat id, model and all else in every chunk. After a chunk was read in full, the bytes around its one piece
of text are kept; as long as the next chunks have the same bytes there, they mean the same, too. What is learned is
checked by reading the chunk once more with another text in its place, so that nothing is guessed about JSON.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from gateway.events import Event, Extension, ReasoningDelta, TextDelta, ToolCallDelta
from gateway.types import Json
from gateway.wire.json_text import NotJson, decode_json

Delta = TextDelta | ReasoningDelta | ToolCallDelta

_STRING: Final = re.compile(rb'"(?:content|reasoning_content|reasoning|arguments)" ?: ?("[^"\\]*(?:\\.[^"\\]*)*")')
_PROBE: Final = "\u0001probe"
_WRITTEN_PROBE: Final = msgspec.json.encode(_PROBE)
# A backend that changes more than the text in every chunk is never learned; to try each time would double the work.
_TRIES: Final = 8
# The search takes memory for every escape in the text; a chunk that is longer is none that comes again and again.
_LONGEST: Final = 1 << 14

_decode_text = msgspec.json.Decoder(str).decode


class Template:
    """The bytes around the text of the last chunk that was read in full, where they could be learned."""

    def __init__(self) -> None:
        self._learned = False
        self._before = b""
        self._after = b""
        self._text = slice(0)
        self._extensions: tuple[Extension, ...] = ()
        self._delta: Callable[[str], Delta] = TextDelta
        self._tries = _TRIES

    def read(self, chunks: Sequence[bytes], at: int, events: list[Event]) -> int:
        """Add the events of all chunks from this place on that fit. Returns the place of the first that must be read
        in full, or of the end."""
        if not self._learned:
            return at
        before, after, text, extensions, delta = self._before, self._after, self._text, self._extensions, self._delta
        for position in range(at, len(chunks)):
            chunk = chunks[position]
            if not (chunk.startswith(before) and chunk.endswith(after)):
                return position
            try:
                said = _decode_text(chunk[text])
            except (msgspec.DecodeError, UnicodeDecodeError):
                return position
            if not said:
                return position
            self._tries = _TRIES
            events += extensions
            events.append(delta(said))
        return len(chunks)

    def learn(self, chunk: bytes, document: Json, events: Sequence[Event]) -> None:
        """Keep the chunk, when its events are one delta and perhaps unknown fields before it."""
        self._learned = False
        if not self._tries or not events or len(chunk) > _LONGEST:
            return
        *others, delta = events
        extensions = tuple(event for event in others if isinstance(event, Extension))
        if not isinstance(delta, Delta) or len(extensions) < len(others):
            return
        self._tries -= 1
        text = _text(delta)
        places = [found.span(1) for found in _STRING.finditer(chunk) if _decoded(found[1]) == text]
        if len(places) != 1:
            return
        ((start, end),) = places
        if _changes_only_the_text(chunk[:start], chunk[end:], document, delta):
            self._before, self._after = chunk[:start], chunk[end:]
            self._text = slice(start, end - len(chunk))
            self._extensions = extensions
            self._delta = partial(ToolCallDelta, delta.index) if isinstance(delta, ToolCallDelta) else type(delta)
            self._learned = True


def _text(delta: Delta) -> str:
    return delta.arguments if isinstance(delta, ToolCallDelta) else delta.text


def _decoded(string: bytes) -> str | None:
    try:
        return _decode_text(string)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _changes_only_the_text(before: bytes, after: bytes, document: Json, delta: Delta) -> bool:
    """Whether another string between these bytes is read as another text of the same delta, and as nothing else."""
    try:
        probe = decode_json(before + _WRITTEN_PROBE + after)
    except NotJson:
        return False
    holder = _holder(probe, delta)
    fields = [field for field, value in holder.items() if value == _PROBE]
    for field in fields:
        holder[field] = _text(delta)
    return len(fields) == 1 and fields[0] in _FIELDS[type(delta)] and probe == document


_FIELDS: Final[dict[type[Delta], frozenset[str]]] = {
    TextDelta: frozenset({"content"}),
    ReasoningDelta: frozenset({"reasoning_content", "reasoning"}),
    ToolCallDelta: frozenset({"arguments"}),
}


def _holder(document: Json, delta: Delta) -> dict[str, Json]:
    """The object that holds the text. Never learned: a call's name beside its arguments, which may begin another call,
    and a piece of a call beside the text or a call, which may be held back and count without an event."""
    match document:
        case {"choices": [{"delta": {"function_call": said}}]} if said:
            return {}
        case {"choices": [{"delta": {"tool_calls": [{"function": dict(function)}]}}]} if type(delta) is ToolCallDelta:
            return {} if function.get("name") else function
        case {"choices": [{"delta": dict(fields)}]}:
            return {} if fields.get("tool_calls") else fields
        case _:
            return {}
