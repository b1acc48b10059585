"""Derives the number of client connections from the limit of open files, and reserves descriptors for other uses.

Without a free descriptor, the event loop can only reset new connections, and the process can neither reach a backend
nor open a file. So the gateway refuses clients before that point, with an error response.
"""

import contextlib
import errno
from typing import Final

from gateway.core.errors import BackendError, GatewayError

try:
    import resource
except ModuleNotFoundError:  # on Windows, which has no such limit
    LIMITED = False
else:
    LIMITED = True

# For the log, settings.json, name look-ups, and connections to backends.
KEPT_BACK: Final = 64
# Where no limit is set, a table for every possible descriptor would still be too large.
MOST: Final = 1_000_000
_LACK: Final = (errno.EMFILE, errno.ENFILE)


def raise_limit() -> None:
    """Raises this process's limit of open files to the highest value that the system allows. The lower limit that most
    systems start a process with is meant for programs that use select(2)."""
    if not LIMITED:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    # Some systems have a further limit that cannot be read here.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_descriptors() -> int:
    """Returns how many descriptors may be open at once."""
    if not LIMITED:
        return MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def default_connections() -> int:
    """Returns the default number of connections: each client may need one more descriptor, for its backend."""
    return max(16, (most_descriptors() - KEPT_BACK) // 2)


def last_for_clients() -> int:
    """Returns the highest descriptor that a client may have. The system assigns the lowest free one, so a higher one
    means that all lower ones are in use, for any purpose."""
    most = most_descriptors()
    return most - min(KEPT_BACK, most // 4)


def last_for_backends() -> int:
    """Returns the highest descriptor that a connection to a backend may have. Above it is room to accept clients and
    refuse them with a response: without a free descriptor, the event loop can only reset them."""
    most = most_descriptors()
    return most - min(KEPT_BACK, most // 4) // 2


def check_lack(error: BackendError) -> None:
    """Raises GatewayError 503 where the backend did not fail: no descriptor was left to connect to it."""
    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _LACK:
        raise GatewayError(
            "The gateway has no file descriptor left for another connection. Try again soon.",
            status=503,
            code="overloaded",
            headers={"retry-after": "1"},
        ) from error.__cause__
