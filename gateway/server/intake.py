"""A request's body as it arrives -> ASGI messages, one for all that has come since the last one."""

import asyncio

from starlette.types import Message
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl


class Intake:
    """One request's body. `over` says that nobody is there to send more of it, or nobody wants it any more.

    An event is made only for somebody who really waits: most bodies are here before they are asked for."""

    __slots__ = ("_body", "_event", "_flow", "_more", "_news", "_transport", "expects_continue", "over")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl, expects_continue: bool) -> None:
        self._transport = transport
        self._flow = flow
        # The client sends no body before it is told to (RFC 9110, section 10.1.1).
        self.expects_continue = expects_continue
        self.over = False
        self._body: bytes | bytearray = b""
        self._more = True
        self._news = False
        self._event: asyncio.Event | None = None

    def feed(self, piece: bytes) -> None:
        """Some more has arrived."""
        if self.over:
            return
        if not self._body:
            self._body = piece
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += piece
        if len(self._body) > HIGH_WATER_LIMIT:
            self._flow.pause_reading()
        self._tell()

    def close(self) -> None:
        """That was all."""
        if not self.over:
            self._more = False
            self._tell()

    def end(self) -> None:
        """The client has left, or has been answered."""
        self.over = True
        self._tell()

    async def receive(self) -> Message:
        """The `receive` of ASGI: `http.request` with what has come, and `http.disconnect` at last."""
        if self.expects_continue and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.expects_continue = False
        if not self.over:
            self._flow.resume_reading()
            if not self._news:
                self._event = self._event or asyncio.Event()
                await self._event.wait()
            self._news = False
        if self.over:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body = b""
        return {"type": "http.request", "body": body, "more_body": self._more}

    def _tell(self) -> None:
        self._news = True
        if self._event is not None:
            self._event.set()
            self._event = None
