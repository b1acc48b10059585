"""uvicorn's httptools protocol, with what a demo lacks there: answers end with their client, and connections break."""

import asyncio
import socket
import struct
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_RESET: Final = struct.pack("ii", 1, 0)


class Connection(HttpToolsProtocol):
    """One connection; a request finds it in its scope's state."""

    # Cancelled when the client leaves: that is how an early close is seen while nothing is written.
    answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.answering is not None:
            self.answering.cancel()
        super().connection_lost(exc)
        self.lost.set()
        # uvicorn lets it outlive a reset, and so would this.
        self._unset_keepalive_if_required()

    def on_headers_complete(self) -> None:
        state = self.scope["state"]
        super().on_headers_complete()
        # uvicorn has made a task, which begins when all that has been read is parsed.
        state["connection"] = self

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # uvicorn stops reading in a large body, and whoever does not read sees nobody leave.
        if not self.pipeline:
            self.flow.resume_reading()

    async def cut(self, reset: bool) -> None:
        """End the connection now, by a reset or by a FIN, and return when it is gone."""
        self.answering = None
        if reset:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()
        await self.lost.wait()
