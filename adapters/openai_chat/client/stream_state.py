"""Defines which state of a streamed answer may follow which.

- `NEW`: no chunk is written. A client that receives a failure now has seen nothing of an answer.
- `OPEN`: the chunk with the role is written, and content may follow.
- `FINISHED`: the chunk with the finish reason is written. Only unknown fields of the backend and the usage may follow.
- `ENDED`: the last bytes are written: `[DONE]`, or the one frame of an error.

The inputs: `chunk` is a chunk with a choice, `finish` follows the one with the finish reason, `end` is the end of the
answer or its failure. The chunk with the role comes before all others, so that `finish` finds an open answer. Deltas on
the fast path change nothing and are no input.

The encoder owns no socket. Whoever feeds it writes its bytes, and ends it once: an answer ends in any state, because a
backend may fail before its first event as well as behind its last. `gateway.core.grammar` is the law for the events
that are fed; these states say what of them has been written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

StreamInput: TypeAlias = Literal["chunk", "finish", "end"]


# The members are integers because their hash costs no call.
class StreamState(IntEnum):
    """The state of a streamed answer."""

    NEW = 0
    OPEN = 1
    FINISHED = 2
    ENDED = 3


# Where every step counts: to read a member from its class takes a call in Python 3.11.
NEW: Final = StreamState.NEW
OPEN: Final = StreamState.OPEN


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
STREAM_TRANSITIONS: Final[Mapping[StreamState, Mapping[StreamInput, StreamState]]] = {
    StreamState.NEW: {
        "chunk": StreamState.OPEN,
        "end": StreamState.ENDED,
    },
    StreamState.OPEN: {
        "chunk": StreamState.OPEN,
        "finish": StreamState.FINISHED,
        "end": StreamState.ENDED,
    },
    StreamState.FINISHED: {
        "chunk": StreamState.FINISHED,
        "end": StreamState.ENDED,
    },
    StreamState.ENDED: {},
}
