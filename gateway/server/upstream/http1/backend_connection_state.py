"""Defines which state of a connection to a backend may follow which.

- `NEW`: there is no socket yet.
- `IDLE`: the socket is open and belongs to no request. The backend has to be silent.
- `ACTIVE`: a request was sent, and its response is being read.
- `FAILED`: a fault is recorded, and the socket is being closed.
- `CLOSED`: the socket is closed.

The inputs: `opened` is the end of the handshakes of TCP and TLS, `request` the next request, `released` the end of a
response that leaves the connection sound, `fault` whatever makes it unusable (a broken response, bytes that no request
asked for, `abort`), `lost` the end of the socket.

Who owns the connection: the connector until it is open, the pool while it is kept, and in between the one request that
it is lent to, which returns it with `ConnectionPool.release` or ends it with `abort`. In `FAILED` it has no owner: the
pool forgets it when it is lost. The socket belongs to the event loop's transport; only the connection writes to it.

What ends it:

- `IDLE`: the backend's close, bytes that no request asked for, the pool's keep-alive timeout.
- `ACTIVE`: a response that is broken, too large, or by its own words the last; bytes left unread or unsent; a request
  that is given up.
- `FAILED`: nothing else can happen. The first fault is the one that is reported; later requests and faults change
  nothing. That holds in `CLOSED` too: a backend may close a connection before a request is sent on it, and the fault is
  raised for who awaits the response.

The end of a socket that was never open is no input: the connector reports that itself.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

BackendInput: TypeAlias = Literal["opened", "request", "released", "fault", "lost"]


# The members are integers because their hash costs no call.
class BackendState(IntEnum):
    """The state of a connection to a backend."""

    NEW = 0
    IDLE = 1
    ACTIVE = 2
    FAILED = 3
    CLOSED = 4


# Where every step counts: to read a member from its class takes a call in Python 3.11.
ACTIVE: Final = BackendState.ACTIVE


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
BACKEND_TRANSITIONS: Final[Mapping[BackendState, Mapping[BackendInput, BackendState]]] = {
    BackendState.NEW: {
        "opened": BackendState.IDLE,
    },
    BackendState.IDLE: {
        "request": BackendState.ACTIVE,
        "fault": BackendState.FAILED,
        "lost": BackendState.CLOSED,
    },
    BackendState.ACTIVE: {
        "released": BackendState.IDLE,
        "fault": BackendState.FAILED,
        "lost": BackendState.CLOSED,
    },
    BackendState.FAILED: {
        "request": BackendState.FAILED,
        "fault": BackendState.FAILED,
        "lost": BackendState.CLOSED,
    },
    BackendState.CLOSED: {
        "request": BackendState.CLOSED,
        "fault": BackendState.CLOSED,
    },
}
