"""Defines which state of a client's connection may follow which.

A client may send its next request before it has the response to the last one (RFC 9112, section 9.3.2), so a state says
what both sides do: whether the client is within a head, and whether the gateway owes a response.

- `HEAD`: no response is due. The first head is awaited, or a head has begun.
- `SERVING`: a response is due. The client sends the body of its request, or nothing.
- `PIPELINED`: a response is due, and the head of another request has begun.
- `IDLE`: every request has its response, and no head has begun. Bytes that arrive belong to the body of a request that
  was answered early.
- `CLOSED`: the socket is closed.

The inputs: `head` is the first byte of a head, `request` the end of a valid one, `answered` the end of the last
response that is due, `lost` the end of the socket. Requests that wait behind the one being served have no state of
their own, and a head that is not accepted is no input: the connection is closed.

Who owns the socket: the event loop's transport. In `HEAD` and `IDLE` the connection writes to it, only to refuse the
client. In `SERVING` and `PIPELINED` the `ResponseWriter` of the request that is served does, and before it the
`RequestBody`, which asks for the body with status 100. Once the transport is closing, no byte is parsed and no
request begins: the state stays as it is until `lost`.

What ends the connection, besides the client:

- `HEAD`: the header timeout, a head that is not accepted, the server's shutdown.
- `SERVING`: a response that says so, one that breaks off, a body that is no HTTP.
- `PIPELINED`: the same. The header timeout does not interrupt a response; it starts anew.
- `IDLE`: the keep-alive timeout, the server's shutdown.
- The write timeout, in every state: a client that reads nothing of what was sent.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

ClientInput: TypeAlias = Literal["head", "request", "answered", "lost"]


# The members are integers because their hash costs no call.
class ClientState(IntEnum):
    """The state of a client's connection."""

    HEAD = 0
    SERVING = 1
    PIPELINED = 2
    IDLE = 3
    CLOSED = 4


# Where every step counts: to read a member from its class takes a call in Python 3.11.
IDLE: Final = ClientState.IDLE


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
CLIENT_TRANSITIONS: Final[Mapping[ClientState, Mapping[ClientInput, ClientState]]] = {
    ClientState.HEAD: {
        "request": ClientState.SERVING,
        "lost": ClientState.CLOSED,
    },
    ClientState.SERVING: {
        "head": ClientState.PIPELINED,
        "answered": ClientState.IDLE,
        "lost": ClientState.CLOSED,
    },
    ClientState.PIPELINED: {
        "request": ClientState.SERVING,
        "answered": ClientState.HEAD,
        "lost": ClientState.CLOSED,
    },
    ClientState.IDLE: {
        "head": ClientState.HEAD,
        "lost": ClientState.CLOSED,
    },
    ClientState.CLOSED: {},
}
# The client is within a head, or its first head is awaited.
IN_HEAD: Final = (ClientState.HEAD, ClientState.PIPELINED)
# A response is due.
BUSY: Final = (ClientState.SERVING, ClientState.PIPELINED)
