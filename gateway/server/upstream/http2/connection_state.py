"""Defines which state of an HTTP/2 connection to a backend may follow which.

- `NEW`: there is no socket yet.
- `OPENING`: the socket is open, and the backend's first SETTINGS have not come.
- `OPEN`: requests may be sent, each on a stream of its own.
- `DRAINING`: no further request is sent; the responses that are being read go on.
- `FAILED`: a fault is recorded, and the socket is being closed.
- `CLOSED`: the socket is closed.

The inputs: `opened` is the end of the handshakes of TCP and TLS, `settings` the first SETTINGS, `drained` a GOAWAY or
the last request that one connection serves, `fault` whatever makes it unusable (broken frames, a flood, `abort`),
`lost` the end of the socket.

The pool owns the connection, from its first byte to its last. A request owns its stream, which it leaves with
`Http2Stream.leave`; the stream may end before, by the end of the response, a reset or the end of the connection. The
socket belongs to the event loop's transport; only the connection writes to it.

What ends it: the backend's close, a fault, the pool's keep-alive timeout, and in `DRAINING` the end of the last stream.
The first fault is the one that is reported; later ones change nothing.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

Http2Input: TypeAlias = Literal["opened", "settings", "drained", "fault", "lost"]


class Http2State(IntEnum):
    """The state of an HTTP/2 connection to a backend."""

    NEW = 0
    OPENING = 1
    OPEN = 2
    DRAINING = 3
    FAILED = 4
    CLOSED = 5


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
HTTP2_TRANSITIONS: Final[Mapping[Http2State, Mapping[Http2Input, Http2State]]] = {
    Http2State.NEW: {
        "opened": Http2State.OPENING,
    },
    Http2State.OPENING: {
        "settings": Http2State.OPEN,
        "drained": Http2State.DRAINING,
        "fault": Http2State.FAILED,
        "lost": Http2State.CLOSED,
    },
    Http2State.OPEN: {
        "drained": Http2State.DRAINING,
        "fault": Http2State.FAILED,
        "lost": Http2State.CLOSED,
    },
    Http2State.DRAINING: {
        "drained": Http2State.DRAINING,
        "fault": Http2State.FAILED,
        "lost": Http2State.CLOSED,
    },
    Http2State.FAILED: {
        "fault": Http2State.FAILED,
        "lost": Http2State.CLOSED,
    },
    Http2State.CLOSED: {
        "fault": Http2State.CLOSED,
    },
}
