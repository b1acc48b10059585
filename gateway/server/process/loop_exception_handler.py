"""Logs uncaught exceptions of the event loop, at most one line a second.

One cause may raise them without end: asyncio's own loop reports every connection that it could not accept.
"""

import asyncio
from typing import Any

from gateway.server.log.logger import LOGGER
from gateway.server.log.throttle import LogThrottle


class LoopExceptionHandler:
    """An exception handler for an event loop."""

    def __init__(self) -> None:
        self._throttle = LogThrottle()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # as asyncio calls it
        count = self._throttle.count(loop.time())
        if count:
            error: BaseException | None = context.get("exception")
            LOGGER.error(
                "exception in the event loop (%d since the last such line): %s",
                count,
                context["message"],
                exc_info=error,
            )
