"""Serves one WebSocket of a client, after its HTTP connection has been upgraded: the `websocket` scope of ASGI.

Loaded with the first upgrade. The connection's HTTP protocol has parsed and checked the head; what the client sends
before the application has accepted is kept until then. Sources: RFC 6455, RFC 7692; ASGI, "HTTP & WebSocket ASGI
Message Format", with its extension "WebSocket Denial Response".
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from starlette.types import ASGIApp, Message, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from gateway.server.http.flow_control import HIGH_WATER, FlowControl
from gateway.server.http.read_body import BODY_S
from gateway.server.http.websocket_handshake import accept
from gateway.server.http.websocket_messages import (
    HEADS,
    PING,
    SHORT,
    Begun,
    Closing,
    MessageReader,
    Reply,
    Text,
    Violation,
    text_frames,
)
from gateway.server.http.write_timeout import WriteTimeout
from gateway.server.log.logger import LOGGER

# The time in which a client answers the close frame of the server.
CLOSE_S: Final = 5
# With so many messages that the application has not taken, nothing more is read or parsed.
MOST_UNTAKEN: Final = 2
# So many bytes are parsed at once, since they may be many small frames, or inflate; other clients are served between.
SLICE: Final = 16 * 1024
_ABNORMAL: Final = 1006
_NOT_IN_TIME: Final = 1008


class WebSocketProtocol(asyncio.Protocol):
    """The protocol of one connection from its upgrade on. It is the application's `WebSocket`, too."""

    def __init__(
        self,
        app: ASGIApp,
        server_state: ServerState,
        transport: asyncio.Transport,
        scope: Scope,
        most: int,
        write_timeout_s: float,
    ) -> None:
        self.flow = FlowControl(transport)
        self._app = app
        self._server_state = server_state
        self._transport = transport
        self._scope = scope
        self._most = most
        self._write_timeout = WriteTimeout(transport, write_timeout_s)
        self._loop = asyncio.get_running_loop()
        self.heard_at = time.monotonic()
        self._messages: deque[Message] = deque([{"type": "websocket.connect"}])
        self._news = asyncio.Event()
        # What was received and not parsed: all of it until the application accepts.
        self._unparsed = bytearray()
        self._parsing: asyncio.Handle | None = None
        self._reader: MessageReader | None = None
        self._refused: int | None = None
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, rest: bytes) -> None:
        """Takes over the connection, with the bytes that followed its head."""
        self._transport.set_protocol(self)
        # The type of uvicorn's set names its own protocols.
        cast("set[WebSocketProtocol]", self._server_state.connections).add(self)
        self._unparsed += rest
        scope = {**self._scope, "state": {**self._scope["state"], "websocket": self}}
        task = self._loop.create_task(self._serve(scope))
        self._server_state.tasks.add(task)
        task.add_done_callback(self._conclude)

    async def _serve(self, scope: Scope) -> None:
        await self._app(scope, self.receive, self.send)

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        if self._closed and self._reader is None:
            return
        self._unparsed += data
        if self._reader is None:
            if len(self._unparsed) > HIGH_WATER:
                self.flow.pause_reading()
        elif len(self._unparsed) == len(data):
            self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        cast("set[WebSocketProtocol]", self._server_state.connections).discard(self)
        self._write_timeout.end()
        self._stop_timer()
        self._closed = True
        self._unparsed.clear()
        self._tell_end(_ABNORMAL)
        self.flow.resume_writing()

    def eof_received(self) -> None:
        # A client that has ended its half reads no more events either (RFC 6455, section 7.1.1).
        self._disconnect()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        # What is sent while the client reads nothing would wait here: answers to pings, and to events.
        self.flow.pause_reading()
        self._write_timeout.begin()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        if not self._transport.is_closing():
            self._write_timeout.end()
        self._resume_reading()

    # uvicorn's server

    def shutdown(self) -> None:
        """uvicorn calls it when the server stops. The application has been told, and closes when it has finished."""

    # ASGI

    async def receive(self) -> Message:
        """Implements the `receive` of ASGI. A message with a `violation` says, in the place of a text, why the client's
        messages are not read any more; the application closes the connection."""
        while not self._messages:
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        if message["type"] == "websocket.disconnect":
            # It stays true.
            self._messages.appendleft(message)
        self._resume_reading()
        return message

    async def send(self, message: Message) -> None:
        """Implements the `send` of ASGI."""
        match message["type"]:
            case "websocket.accept":
                self._accept(message.get("headers", ()))
            case "websocket.http.response.start":
                self._refuse(message["status"], message.get("headers", ()))
            case "websocket.http.response.body":
                self._write(message.get("body", b""))
                if not message.get("more_body", False):
                    self._end()
            case "websocket.close":
                self.close(message.get("code", 1000), message.get("reason") or "")
            case "websocket.send":
                text = message.get("text")
                assert text is not None, "the gateway sends texts alone"
                self.write((text.encode(),))
                await self.flow.drain()
            case other:
                raise RuntimeError(f"no message of the websocket scope: {other}")

    # WebSocket

    def write(self, texts: Sequence[bytes]) -> None:
        """Sends messages, each the UTF-8 of a text, without waiting."""
        if self._closed:
            return
        # Not joined to what follows in the same turn of the loop: uvloop does that.
        match texts:
            case [text] if (size := len(text)) < SHORT:
                self._transport.write(HEADS[size] + text)
            case _:
                self._transport.write(text_frames(texts))

    def ping(self) -> None:
        """Sends a ping."""
        if not self._closed:
            self._transport.write(PING)

    def close(self, code: int, reason: str) -> None:
        """Closes the connection behind what was written; before the upgrade is accepted, with a 403."""
        if self._closed:
            return
        if self._reader is None:
            self._refuse(403, [(b"content-length", b"0")])
            self._end()
            return
        self._write(self._reader.close(code, reason))
        self._closed = True
        self._tell_end(code)
        # A client that does not answer does not keep the connection.
        self._start_timer(CLOSE_S, self._disconnect)

    def cut(self) -> None:
        """Closes the connection now; unsent bytes are lost."""
        self._closed = True
        if not self._transport.is_closing():
            self._transport.abort()

    def _accept(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        own = (*self._server_state.default_headers, *headers)
        deflate, head = accept(self._scope["headers"], self._most, own)
        self._reader = MessageReader(self._most, deflate)
        self._write(head)
        self._resume_reading()

    def _refuse(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        pairs = [pair for pair in headers if pair[0].lower() != b"connection"]
        lines = map(b": ".join, (*self._server_state.default_headers, *pairs, (b"connection", b"close")))
        self._refused = status
        self._write(STATUS_LINE[status] + b"\r\n".join(lines) + b"\r\n\r\n")

    def _end(self) -> None:
        self._closed = True
        self._tell_end(_ABNORMAL)
        self._disconnect()

    def _disconnect(self) -> None:
        """Closes the connection once the client has read what is unsent, which it may do in the write timeout."""
        if not self._transport.is_closing():
            self._write_timeout.end()
            self._write_timeout.begin()
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if data and not self._closed:
            self._transport.write(data)

    def _parse(self) -> None:
        """Parses a piece of what has been received, which may be inflated, and the rest in the next rounds of the loop,
        as far as the application takes the messages and the client reads the answers."""
        self._parsing = None
        reader = self._reader
        if reader is None or self._held:
            return
        data = bytes(self._unparsed[:SLICE])
        del self._unparsed[:SLICE]
        if self._unparsed:
            self.flow.pause_reading()
        # Of several pings the last one may be answered alone (RFC 6455, section 5.5.3).
        pong = b""
        for received in reader.feed(data):
            if isinstance(received, Reply):
                pong = received.data
            else:
                self._take(reader, received)
        self._write(pong)
        self._resume_reading()

    def _take(self, reader: MessageReader, received: Text | Begun | Closing | Violation) -> None:
        match received:
            case Text():
                self._tell({"type": "websocket.receive", "text": received.text})
            case Begun():
                if not self._closed:
                    self._start_timer(BODY_S, self._late)
            case Closing():
                self._write(reader.close(received.code, ""))
                self._closed = True
                self._tell_end(received.code)
                self._disconnect()
            case Violation():
                self._violated(received)

    def _violated(self, found: Violation) -> None:
        if self._closed:
            self._disconnect()
        else:
            self._tell({"type": "websocket.receive", "violation": (found.code, found.reason)})

    def _late(self) -> None:
        self._violated(Violation(_NOT_IN_TIME, "The message did not arrive in time."))

    def _tell(self, message: Message) -> None:
        if self._closed:
            return
        self._stop_timer()
        self._messages.append(message)
        if self._held:
            self.flow.pause_reading()
        self._news.set()

    def _tell_end(self, code: int) -> None:
        if not self._messages or self._messages[-1]["type"] != "websocket.disconnect":
            self._messages.append({"type": "websocket.disconnect", "code": code})
            self._news.set()

    @property
    def _held(self) -> bool:
        return len(self._messages) >= MOST_UNTAKEN or self.flow.write_paused

    def _resume_reading(self) -> None:
        if self._held:
            return
        if not self._unparsed:
            if not self._transport.is_closing():
                self.flow.resume_reading()
        elif self._parsing is None:
            self._parsing = self._loop.call_soon(self._parse)

    def _start_timer(self, seconds: float, call: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, call)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _conclude(self, task: asyncio.Task[None]) -> None:
        """Ends the connection after the application has returned."""
        self._server_state.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            LOGGER.error("the application failed", exc_info=error)
        if self._reader is None and self._refused is None and not self._closed:
            self._refuse(500, [(b"content-length", b"0")])
            self._end()
        elif not self._closed:
            self.close(1011 if error is not None or task.cancelled() else 1000, "")
