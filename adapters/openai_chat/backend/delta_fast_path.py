# fast path: "CPU/chunk, us", decodes the text of a chunk alone
# budget: "chunk"
# law: tests/adapters/openai_chat/backend/test_delta_fast_path.py
#      test_what_is_learned_changes_nothing
"""Decodes a chunk that differs from the last one only in its text, without parsing the rest again.

Backends repeat the id, the model and every other field in every chunk. After a chunk was read in full, the bytes around
its one piece of text are kept. Later chunks with the same bytes around their text have the same meaning. The kept bytes
are verified by parsing the chunk once more with another text in its place, so that nothing is assumed about JSON.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, TextDelta, ToolCallDelta
from gateway.framing.json_text import NotJson, decode_json

Delta = TextDelta | ReasoningDelta | ToolCallDelta

_PROBE: Final = "\u0001probe"
_WRITTEN_PROBE: Final = msgspec.json.encode(_PROBE)
# If a backend changes more than the text in every chunk, learning never succeeds; trying each time would double the
# work.
_TRIES: Final = 8

_encode = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(str).decode


class DeltaFastPath:
    """Holds the bytes around the text of the last chunk that was read in full, if they could be learned.

    `more` returns the function that makes a delta of the call with this index, for as long as the response goes on.
    """

    def __init__(self, more: Callable[[int], Callable[[str], ToolCallDelta]]) -> None:
        self._more = more
        self._learned = False
        self._before = b""
        self._after = b""
        self._text = slice(0)
        self._extensions: tuple[PassthroughFields, ...] = ()
        self._delta: Callable[[str], Delta] = TextDelta
        self._tries = _TRIES
        # A chunk that was read in full, and is learned with the next one: its events are sent first, and the last chunk
        # of a response is never learned.
        self._due: tuple[bytes, Json, Delta, tuple[PassthroughFields, ...]] | None = None

    def read(self, chunks: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of all chunks that match. Return the first chunk that must be read in full, or None after the
        last one."""
        if self._due is not None:
            if (first := next(chunks, None)) is None:
                return None
            due, self._due = self._due, None
            self._learn(*due)
            chunks = chain((first,), chunks)
        if not self._learned:
            return next(chunks, None)
        before, after, text, extensions, delta = self._before, self._after, self._text, self._extensions, self._delta
        for chunk in chunks:
            written = chunk[text]
            if before + written + after != chunk:
                return chunk
            try:
                decoded = _decode_text(written)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return chunk
            if not decoded:
                return chunk
            events += extensions
            events.append(delta(decoded))
            self._tries = _TRIES
        return None

    def _maker(self, delta: Delta) -> Callable[[str], Delta]:
        """Returns the function that makes such a delta of another text."""
        if type(delta) is ToolCallDelta:
            return self._more(delta.index)
        return partial(ReasoningDelta, field=delta.field) if type(delta) is ReasoningDelta else TextDelta

    def learn(self, chunk: bytes, document: Json, events: Sequence[Event]) -> None:
        """Keeps the chunk, to learn it, when its events are one delta, optionally after unknown fields."""
        self._learned, self._due = False, None
        if not self._tries or not events:
            return
        *others, delta = events
        if not (type(delta) is TextDelta or type(delta) is ReasoningDelta or type(delta) is ToolCallDelta):
            return
        extensions = tuple([event for event in others if type(event) is PassthroughFields])
        if len(extensions) == len(others):
            self._due = (chunk, document, delta, extensions)

    def _learn(self, chunk: bytes, document: Json, delta: Delta, extensions: tuple[PassthroughFields, ...]) -> None:
        self._tries -= 1
        cut = _cut(chunk, _text(delta))
        if cut is not None and _changes_only_the_text(*cut, document, delta):
            self._before, self._after = cut
            self._text = slice(len(self._before), -len(self._after))
            self._extensions = extensions
            self._delta = self._maker(delta)
            self._learned = True


def _text(delta: Delta) -> str:
    return delta.arguments if type(delta) is ToolCallDelta else delta.text


def _cut(chunk: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Returns the bytes before and after the one string with this text. Return None when the string is not found,
    occurs more than once, or is written in an uncommon way."""
    string = _encode(text)
    if string not in chunk:
        string = json.dumps(text).encode()
    before, found, after = chunk.partition(string)
    return (before, after) if found and string not in after else None


def _changes_only_the_text(before: bytes, after: bytes, document: Json, delta: Delta) -> bool:
    """Whether another string between these bytes parses as another text of the same delta and changes nothing else."""
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
    """Returns the object that holds the text. Two forms are never learned: a call's name beside its arguments, which
    may begin another call; and a piece of a call beside the text or another call, which may be held back and count
    without an event."""
    choices = document.get("choices") if isinstance(document, dict) else None
    fields = _only(choices, "delta")
    if fields.get("function_call"):
        return {}
    if not fields.get("tool_calls"):
        return fields
    function = _only(fields["tool_calls"], "function") if type(delta) is ToolCallDelta else {}
    return {} if function.get("name") else function


def _only(items: Json, field: str) -> dict[str, Json]:
    """Returns the object in this field of the only object in an array, or an empty object when there is none."""
    item = items[0] if isinstance(items, list) and len(items) == 1 else None
    found = item.get(field) if isinstance(item, dict) else None
    return found if isinstance(found, dict) else {}
