"""Pauses reading from a client and waits for a client that reads slowly."""

import asyncio
from typing import Final

# The number of unread bytes of a request above which reading pauses.
HIGH_WATER: Final = 64 * 1024


class FlowControl:
    """The flow of one connection, in both directions. `write_paused`: the client is slow. `holds_requests`: some wait
    behind the one that is served, so that nothing is read until none does.

    Uvicorn's class of this name makes an event for each connection; most connections never wait."""

    __slots__ = ("_resumed", "_transport", "holds_requests", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.holds_requests = False
        self.write_paused = False
        self._resumed: asyncio.Event | None = None

    async def drain(self) -> None:
        """Waits while the client is slow."""
        if self.write_paused:
            self._resumed = self._resumed or asyncio.Event()
            await self._resumed.wait()

    def pause_reading(self) -> None:
        """Reads no more from the client."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads from the client again, unless it holds requests."""
        if self.read_paused and not self.holds_requests:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Records that the client is slow."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Records that the client has caught up, and wakes all that wait."""
        self.write_paused = False
        if self._resumed is not None:
            self._resumed.set()
            self._resumed = None
