"""A request's body as it arrives -> ASGI messages, one for all that has come since the last one."""

import asyncio

from starlette.types import Message
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl


class Intake:
    """One request's body: what has come and was not taken yet. `news` says that there is something to look at: some of
    the body, that there will be no `more`, or that it is `over`: nobody sends it, or nobody wants it any more.

    An event is made only for somebody who really waits: most bodies are here before they are asked for."""

    __slots__ = ("_body", "_event", "_flow", "_transport", "expects_continue", "more", "news", "over")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl, expects_continue: bool) -> None:
        self._transport = transport
        self._flow = flow
        # The client sends no body before it is told to (RFC 9110, section 10.1.1).
        self.expects_continue = expects_continue
        self.over = False
        self._body: bytes | bytearray = b""
        self.more = True
        self.news = False
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
            self.more = False
            self._tell()

    def end(self) -> None:
        """The client has left, or has been answered."""
        self.over = True
        self._tell()

    async def wait(self) -> None:
        """Until there is news. A client that expects to be asked for its body is asked."""
        if self.expects_continue and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.expects_continue = False
        if not self.news:
            self._flow.resume_reading()
            self._event = self._event or asyncio.Event()
            await self._event.wait()

    def take(self) -> bytes:
        """What has come."""
        self.news = self.over
        body = bytes(self._body)
        self._body = b""
        self._flow.resume_reading()
        return body

    async def receive(self) -> Message:
        """The `receive` of ASGI: `http.request` with what has come, and `http.disconnect` at last."""
        await self.wait()
        if self.over:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.take(), "more_body": self.more}

    def _tell(self) -> None:
        self.news = True
        if self._event is not None:
            self._event.set()
            self._event = None
