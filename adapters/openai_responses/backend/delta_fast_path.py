# fast path: "CPU/chunk, us", decodes a piece of text or of arguments in one step
# budget: "responses chunk"
# law: tests/adapters/openai_responses/backend/test_delta_fast_path.py
#      test_a_piece_means_the_same_on_both_paths
"""Decodes an event with a further piece of a part that has begun.

Nearly every event of a stream has this form. The type lists the fields it may have; any other event is read in full.
"""

from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

import msgspec

from adapters.openai_responses.backend.event_reader import EventReader
from adapters.openai_responses.backend.output_item import Pieces
from adapters.openai_responses.backend.part_events import PIECES
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


_decode = msgspec.json.Decoder(_Delta).decode


class DeltaFastPath:
    """Holds the last piece and its part. Any event that is read in full may end the part."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._last: _Delta | None = None
        self._part: Pieces | None = None

    def read(self, chunks: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of all further pieces. Return the first event that must be read in full, or None after the
        last one."""
        last, part = self._last, self._part
        for chunk in chunks:
            try:
                delta = _decode(chunk)
            except (msgspec.DecodeError, UnicodeDecodeError):
                break
            # One by one, because a tuple of these would be made for every piece.
            if (
                last is None
                or delta.output_index != last.output_index
                or delta.content_index != last.content_index
                or delta.summary_index != last.summary_index
                or delta.type != last.type
            ):
                last, part = delta, self._find(delta)
            if part is None:
                break
            text = delta.delta
            part.keep(text)
            events.append(part.make(text))
        else:
            self._last, self._part = last, part
            return None
        self._last = self._part = None
        return chunk

    def _find(self, delta: _Delta) -> Pieces | None:
        """Returns the open part that the piece belongs to."""
        event = PIECES.get(delta.type)
        if event is None:
            return None
        index = {"content_index": delta.content_index, "summary_index": delta.summary_index, None: 0}[event.position]
        return self._reader.open_part(delta.output_index, (event.part, index))
