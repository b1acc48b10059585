"""Does long work for those who look, one after the other: requests that are served lose one thread's share at most."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from gateway.core.errors import InvalidRequest

# So many may wait.
_MOST_WAITING: Final = 8
P = ParamSpec("P")
T = TypeVar("T")


class SerialThread:
    """Runs work in a thread, one at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of the work. Raises InvalidRequest where too much waits."""
        if self._waiting >= _MOST_WAITING:
            raise InvalidRequest("Too many requests are being looked at.", status=503, code="overloaded")
        self._waiting += 1
        try:
            async with self._lock:
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self._waiting -= 1
