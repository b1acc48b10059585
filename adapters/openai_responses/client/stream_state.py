"""Defines which state of a streamed answer may follow which.

- `NEW`: no event is written. A client that receives a failure now has seen nothing of an answer.
- `OPEN`: `response.created` is written, and items may follow.
- `FINISHED`: the answer is complete, all its items are closed, and only its token counts may still arrive.
- `ENDED`: the last event is written: `response.completed`, `response.incomplete` or `response.failed`.

The inputs: `open` is the first event, `finish` the end of the last item, `end` the last event. Every answer that ends
has begun before, because clients accept no other first event. Deltas change nothing and are no input.

`gateway.core.grammar` is the law for the events that are fed; these states say what of them has been written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

StreamInput: TypeAlias = Literal["open", "finish", "end"]


# The members are integers because their hash costs no call.
class StreamState(IntEnum):
    """The state of a streamed answer."""

    NEW = 0
    OPEN = 1
    FINISHED = 2
    ENDED = 3


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
STREAM_TRANSITIONS: Final[Mapping[StreamState, Mapping[StreamInput, StreamState]]] = {
    StreamState.NEW: {"open": StreamState.OPEN},
    StreamState.OPEN: {"finish": StreamState.FINISHED, "end": StreamState.ENDED},
    StreamState.FINISHED: {"end": StreamState.ENDED},
    StreamState.ENDED: {},
}
