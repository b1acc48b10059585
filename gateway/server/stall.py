"""A connection with bytes to send -> its end, when the other side takes none of them for too long."""

import asyncio


class Stall:
    """Looks at one connection between `begin` and `end`, which are called when its buffer is full and when it has room
    again. Whoever takes its bytes slowly is waited for; also when the answer is complete and nobody waits any more."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Nothing more fits in."""
        self._left = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def end(self) -> None:
        """There is room, or nobody to send to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.begin()
        else:
            self._timer = None
            self._transport.abort()
