# fast path: "CPU/chunk, us", decodes an event with a piece of content into its types in one step
# budget: "messages chunk"
# law: tests/adapters/anthropic_messages/backend/test_delta_fast_path.py
#      test_an_event_means_what_it_means_when_read_in_full
"""Decodes the events that carry a piece of text, of thinking or of a call's input, and nothing else.

Nearly every event of a stream is one of them. The types list the fields that it may have; an event with any other field
is read in full.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, TypeAlias

import msgspec

from gateway.core.events import Event

_Piece: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class TextPiece(msgspec.Struct, tag_field="type", tag="text_delta", forbid_unknown_fields=True, gc=False):
    text: _Piece


class ThinkingPiece(msgspec.Struct, tag_field="type", tag="thinking_delta", forbid_unknown_fields=True, gc=False):
    thinking: _Piece


class InputPiece(msgspec.Struct, tag_field="type", tag="input_json_delta", forbid_unknown_fields=True, gc=False):
    partial_json: _Piece


class PieceEvent(msgspec.Struct, tag_field="type", tag="content_block_delta", forbid_unknown_fields=True, gc=False):
    """The event. `index` is the position of its block in the message."""

    index: int
    delta: TextPiece | ThinkingPiece | InputPiece


_decode = msgspec.json.Decoder(PieceEvent).decode


class DeltaFastPath:
    """Reads the pieces that their open block takes as they are: `take` returns the event of one, or None."""

    def __init__(self, take: Callable[[PieceEvent], Event | None]) -> None:
        self._take = take

    def read(self, frames: Iterator[bytes], events: list[Event]) -> bytes | None:
        """Adds the events of the next pieces. Returns the first event that is none or is not valid, and must be read
        in full; None behind the last one."""
        take = self._take
        for frame in frames:
            try:
                piece = _decode(frame)
            # A value before the type is passed over to find it, however deep it is.
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return frame
            event = take(piece)
            if event is None:
                return frame
            events.append(event)
        return None
