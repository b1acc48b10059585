"""Exceptions that nobody caught in the event loop -> log lines, at most one a second.

One cause may raise them without end: asyncio's own loop reports every connection that it could not accept.
"""

import asyncio
from typing import Any

from gateway.server.log import LOGGER
from gateway.server.seldom import Seldom


class Mishaps:
    """An exception handler for a loop."""

    def __init__(self) -> None:
        self._seldom = Seldom()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # as asyncio calls it
        count = self._seldom.tell(loop.time())
        if count:
            error: BaseException | None = context.get("exception")
            LOGGER.error(
                "in the event loop, %d since the last such line: %s", count, context["message"], exc_info=error
            )
