"""Defines which state of a streamed answer may follow which.

- `NEW`: `message_start` is not written. Only keep-alives may have been sent, and a failure may still be a status.
- `OPEN`: `message_start` is written, and content may follow.
- `FINISHED`: the last block is closed. Only the usage may follow, which is in `message_delta` with the reason.
- `ENDED`: the last bytes are written: `message_stop`, or the one event of an error.

The inputs: `start` is `message_start`, `finish` the reason why the answer ended, `end` the end of the answer or its
failure. `message_start` comes before all others, so that `finish` finds an open answer. Which block is open, and which
events must wait for it, is the matter of `gateway.dialects.sequential_blocks`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

StreamInput: TypeAlias = Literal["start", "finish", "end"]


# The members are integers because their hash costs no call.
class StreamState(IntEnum):
    """The state of a streamed answer."""

    NEW = 0
    OPEN = 1
    FINISHED = 2
    ENDED = 3


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
STREAM_TRANSITIONS: Final[Mapping[StreamState, Mapping[StreamInput, StreamState]]] = {
    StreamState.NEW: {
        "start": StreamState.OPEN,
        "end": StreamState.ENDED,
    },
    StreamState.OPEN: {
        "finish": StreamState.FINISHED,
        "end": StreamState.ENDED,
    },
    StreamState.FINISHED: {
        "end": StreamState.ENDED,
    },
    StreamState.ENDED: {},
}
