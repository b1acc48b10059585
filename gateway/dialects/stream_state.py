"""Defines which state of a streamed answer may follow which, for the encoders of all dialects.

- `NEW`: nothing of the answer is written. Only keep-alives may have been sent, and a failure may still be a status.
- `OPEN`: the answer has begun, and content may follow.
- `FINISHED`: the content is complete. Only what belongs to the end may follow: unknown fields of the backend, usage.
- `ENDED`: the last bytes are written, of the answer or of its failure.

The inputs: `write` is a piece of the answer that may be its first, `finish` the end of its content, `end` the end of
the answer or its failure. Deltas on a fast path change nothing and are no input. The encoder of a dialect says what it
writes at each of them.

An encoder owns no socket. Whoever feeds it writes its bytes, and ends it once: an answer ends in any state, because a
backend may fail before its first event as well as behind its last. `gateway.core.grammar` is the law for the events
that are fed; these states say what of them has been written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

StreamInput: TypeAlias = Literal["write", "finish", "end"]


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
        "write": StreamState.OPEN,
        "end": StreamState.ENDED,
    },
    StreamState.OPEN: {
        "write": StreamState.OPEN,
        "finish": StreamState.FINISHED,
        "end": StreamState.ENDED,
    },
    StreamState.FINISHED: {
        "write": StreamState.FINISHED,
        "end": StreamState.ENDED,
    },
    StreamState.ENDED: {},
}
