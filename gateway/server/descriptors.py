"""The process's limit of open files -> how many clients there is room for, and what is kept back from them.

Where the last descriptor is gone, the event loop can only reset who knocks, a backend cannot be reached, and no file be
opened. So clients are sent away before that, with words.
"""

import contextlib
import errno
import resource
from typing import Final

from gateway.errors import BackendError, GatewayError

# For the log, settings.json, name look-ups, and connections to backends.
KEPT_BACK: Final = 64
# Where there is no limit at all, a table for each of that many would still be too large.
MOST: Final = 1_000_000
_LACK: Final = (errno.EMFILE, errno.ENFILE)


def raise_limit() -> None:
    """From here on this process may open as many files as the system allows it. The lower limit that most systems
    start a process with is meant for programs that use select(2)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    # Some systems have yet another limit that cannot be asked for here.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_descriptors() -> int:
    """How many may be open at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def default_connections() -> int:
    """Each client may need one more descriptor, for its backend."""
    return max(16, (most_descriptors() - KEPT_BACK) // 2)


def last_for_clients() -> int:
    """The highest descriptor that a client may have. The system gives the lowest that is free, so one above it means
    that all below are in use, whoever has them."""
    most = most_descriptors()
    return most - min(KEPT_BACK, most // 4)


def check_lack(error: BackendError) -> None:
    """Raises GatewayError 503 where it was not the backend that failed: no descriptor was left to reach it with."""
    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _LACK:
        raise GatewayError(
            "The gateway has no descriptor left for another connection. Try again soon.",
            status=503,
            code="overloaded",
            headers={"retry-after": "1"},
        ) from error.__cause__
