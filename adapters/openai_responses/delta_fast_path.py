# fast path: "CPU/chunk, us", decodes a piece of text or of arguments in one step
# budget: "responses chunk"
# law: tests/adapters/openai_responses/test_delta_fast_path.py::test_a_piece_means_the_same_on_both_paths
"""Decodes an event with a further piece of a part that has begun.

Nearly every event of a stream has this form. The type lists the fields it may have; any other event is read in full.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Final, TypeAlias

import msgspec

from adapters.openai_responses.event_reader import EventReader
from adapters.openai_responses.part_events import PIECES
from gateway.core.events import Event

_Empty: TypeAlias = Annotated[list[None], msgspec.Meta(max_length=0)]
_NOWHERE: Final = -1


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str
    delta: Annotated[str, msgspec.Meta(min_length=1)]
    output_index: int
    content_index: int = _NOWHERE
    summary_index: int = _NOWHERE
    item_id: str | None = None
    sequence_number: int | None = None
    obfuscation: str | None = None
    logprobs: _Empty | None = None


_Position: TypeAlias = tuple[str, int, int, int]
_decode = msgspec.json.Decoder(_Delta).decode


class DeltaFastPath:
    """Holds the part of the last piece. Any event that is read in full may end it."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._position: _Position | None = None
        self._add: Callable[[str], Event]

    def read(self, chunks: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Add the events of all further pieces. Return the first event that must be read in full, or None after the
        last one."""
        for chunk in chunks:
            try:
                delta = _decode(chunk)
            except (msgspec.DecodeError, UnicodeDecodeError):
                break
            position = (delta.type, delta.output_index, delta.content_index, delta.summary_index)
            if position != self._position and not self._find(delta, position):
                break
            events.append(self._add(delta.delta))
        else:
            return None
        self._position = None
        return chunk

    def _find(self, delta: _Delta, position: _Position) -> bool:
        part = PIECES.get(delta.type)
        if part is None:
            return False
        index = {"content_index": delta.content_index, "summary_index": delta.summary_index, None: 0}[part.position]
        pieces = self._reader.open_part(delta.output_index, (part.part, index))
        if pieces is None:
            return False
        self._position, self._add = position, pieces.add
        return True
