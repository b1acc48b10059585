"""Defines what the application writes the events of a WebSocket to, and the plain way beside our own protocol.

An ASGI server is written to with `await send(...)`, while events are written here without waiting, as a response is
(`gateway.server.http.asgi_writer`).
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.server.http.flow_control import FlowControl


class WebSocket(Protocol):
    """The open WebSocket of a client. `flow.write_paused`: the client is slow. `heard_at` is the time at which the
    client last sent anything, also a ping (monotonic clock). Once it is closed, nothing more is written."""

    heard_at: float

    @property
    def flow(self) -> FlowControl: ...

    def write(self, texts: Sequence[bytes]) -> None:
        """Sends messages, each the UTF-8 of a text, without waiting."""
        ...

    def ping(self) -> None:
        """Sends what shows the client that the connection is alive, where the server lets the application do so."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Closes the connection behind what was written, with a code of RFC 6455, section 7.4."""
        ...

    def cut(self) -> None:
        """Closes the connection now; unsent bytes are lost."""
        ...


class AsgiWebSocket:
    """The WebSocket of any ASGI server."""

    def __init__(self, send: Send) -> None:
        # The server reads when it is asked to: nothing pauses that.
        self.flow = FlowControl(asyncio.Transport())
        self.heard_at = time.monotonic()
        self._send = send
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._closed = False

    def write(self, texts: Sequence[bytes]) -> None:
        for text in texts:
            self._put({"type": "websocket.send", "text": text.decode()})

    def ping(self) -> None:
        # The server has pings of its own.
        pass

    def close(self, code: int, reason: str) -> None:
        self._put({"type": "websocket.close", "code": code, "reason": reason})
        self._closed = True

    def cut(self) -> None:
        # No message of ASGI cuts a connection.
        self.close(1011, "")

    async def receive(self, receive: Receive) -> Message:
        """Returns the next message of the server, which is read once its client has what was written: answers to
        messages would else wait here without end."""
        await self.flow.drain()
        message = await receive()
        self.heard_at = time.monotonic()
        if message["type"] == "websocket.disconnect":
            self._closed = True
            self.flow.resume_writing()
        return message

    async def deliver(self) -> None:
        """Sends what is written, until `finish`."""
        while (message := await self._messages.get()) is not None:
            try:
                await self._send(message)
            except (OSError, RuntimeError):
                # The client has disconnected: servers tell so with either.
                self._closed = True
            if self._messages.empty():
                self.flow.resume_writing()

    def finish(self) -> None:
        """Ends `deliver` after what is written."""
        self._messages.put_nowait(None)

    def _put(self, message: Message) -> None:
        if not self._closed:
            self._messages.put_nowait(message)
            self.flow.pause_writing()


def websocket_through_asgi(app: ASGIApp) -> ASGIApp:
    """Returns the application for any ASGI server, from one that finds its WebSocket at `scope["state"]`."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        websocket = AsgiWebSocket(send)
        delivering = asyncio.create_task(websocket.deliver())
        try:
            state = {**scope.get("state", {}), "websocket": websocket}
            await app({**scope, "state": state}, lambda: websocket.receive(receive), send)
        finally:
            websocket.finish()
            await delivering

    return serve
