"""Closes a connection with unsent bytes when its peer reads none of them for too long."""

import asyncio


class WriteTimeout:
    """Checks one connection between `begin` and `end`, which are called when its buffer is full and when it has room
    again. A client that reads slowly is waited for; the check also covers a complete response that no task waits
    for."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Starts the checks: the buffer is full."""
        self._left = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def end(self) -> None:
        """Stops the checks: the buffer has room, or the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.begin()
        else:
            self._timer = None
            self._transport.abort()
