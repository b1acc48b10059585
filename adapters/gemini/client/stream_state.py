"""Defines which state of a streamed answer may follow which.

- `NEW`: no chunk is written. A client that receives a failure now has seen nothing of an answer.
- `OPEN`: a chunk is written, and more may follow.
- `ENDED`: the last bytes are written: the chunk with the finish reason, or an error.

The inputs: `chunk` is any chunk but the last one, `end` the end of the answer or its failure. The chunk with the finish
reason is written with the end, because the token counts, which stand in it, may follow the reason.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

StreamInput: TypeAlias = Literal["chunk", "end"]


# The members are integers because their hash costs no call.
class StreamState(IntEnum):
    """The state of a streamed answer."""

    NEW = 0
    OPEN = 1
    ENDED = 2


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
STREAM_TRANSITIONS: Final[Mapping[StreamState, Mapping[StreamInput, StreamState]]] = {
    StreamState.NEW: {"chunk": StreamState.OPEN, "end": StreamState.ENDED},
    StreamState.OPEN: {"chunk": StreamState.OPEN, "end": StreamState.ENDED},
    StreamState.ENDED: {},
}
