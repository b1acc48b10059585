"""Buffers a request's body and returns it as ASGI messages, each with all bytes received since the last one."""

import asyncio

from starlette.types import Message

from gateway.server.http.flow_control import HIGH_WATER, FlowControl


class RequestBody:
    """One request's body: the bytes that are received and not yet taken. `news` means that the state has changed: bytes
    are available, there will be no `more`, or the body is `over`: the client no longer sends it, or the server no
    longer needs it.

    An event is created only for a reader that really waits: most bodies are received before they are read."""

    __slots__ = ("_body", "_event", "_flow", "_transport", "expects_continue", "more", "news", "over")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl, expects_continue: bool) -> None:
        self._transport = transport
        self._flow = flow
        # The client sends no body before the 100 response (RFC 9110, section 10.1.1).
        self.expects_continue = expects_continue
        self.over = False
        self._body: bytes | bytearray = b""
        self.more = True
        self.news = False
        self._event: asyncio.Event | None = None

    def feed(self, piece: bytes) -> None:
        """Buffers received bytes."""
        if self.over:
            return
        if not self._body:
            self._body = piece
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += piece
        if len(self._body) > HIGH_WATER:
            self._flow.pause_reading()
        self.news = True
        if self._event is not None:
            self._wake(self._event)

    def close(self) -> None:
        """Records the end of the body."""
        if not self.over:
            self.more = False
            self.news = True
            if self._event is not None:
                self._wake(self._event)

    def end(self) -> None:
        """Records that the client has disconnected, or that its response is complete."""
        self.over = True
        self.news = True
        if self._event is not None:
            self._wake(self._event)

    async def wait(self) -> None:
        """Waits until there is news. Sends the 100 response to a client that expects it."""
        if self.expects_continue and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.expects_continue = False
        if not self.news:
            self._flow.resume_reading()
            self._event = self._event or asyncio.Event()
            await self._event.wait()

    def read(self) -> bytes:
        """Returns and removes the buffered bytes."""
        self.news = self.over
        body = bytes(self._body)
        self._body = b""
        if self._flow.read_paused:
            self._flow.resume_reading()
        return body

    async def receive(self) -> Message:
        """Implements the `receive` of ASGI: `http.request` with the buffered bytes, and `http.disconnect` at the
        end."""
        await self.wait()
        if self.over:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.read(), "more_body": self.more}

    def _wake(self, event: asyncio.Event) -> None:
        event.set()
        self._event = None
