"""Asks the system, without waiting, whether a socket has received anything or was closed."""

import select
from collections.abc import Collection
from typing import Final, Protocol

try:
    from select import POLLIN, poll
except ImportError:  # on Windows
    POLLS = False
else:
    POLLS = True

# The peer has closed its side; 0 where the system does not tell that apart from received bytes.
PEER_CLOSED: Final[int] = getattr(select, "POLLRDHUP", 0)


class SocketPoll(Protocol):
    """The question about one socket."""

    def poll(self, timeout: float, /) -> Collection[object]:
        """Returns something where the answer is yes. `timeout` is 0."""


class _Select:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def poll(self, timeout: float, /) -> Collection[object]:
        return select.select([self._descriptor], [], [], timeout)[0]


class _Unknown:
    def poll(self, timeout: float, /) -> Collection[object]:
        return ()


def poll_received(descriptor: int) -> SocketPoll:
    """Asks whether bytes or the end of the connection were received."""
    return _registered(descriptor, POLLIN) if POLLS else _Select(descriptor)


def poll_closed(descriptor: int) -> SocketPoll:
    """Asks whether the connection was closed. Where the system has no such question, the answer is always no."""
    return _registered(descriptor, PEER_CLOSED) if POLLS else _Unknown()


def _registered(descriptor: int, events: int) -> SocketPoll:
    polled = poll()
    polled.register(descriptor, events)
    return polled
