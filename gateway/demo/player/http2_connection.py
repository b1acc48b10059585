"""Serves HTTP/2 with prior knowledge: each stream is one request of an ASGI application.

Sources: RFC 9113; ASGI, "HTTP & WebSocket ASGI Message Format", with its extension for trailers.
"""

import asyncio
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from starlette.types import ASGIApp, Message, Scope

from gateway.demo.player.connection import abort

Headers = Iterable[tuple[bytes, bytes]]

_CONFIGURATION: Final = H2Configuration(client_side=False, header_encoding=None)


class Http2Server:
    """Serves an application over HTTP/2. `tasks` are the responses in progress, `open` the connections."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.open: set[Http2Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()

    def connect(self) -> "Http2Connection":
        """Returns the protocol of a new connection."""
        return Http2Connection(self)

    def connections(self) -> "list[Http2Connection]":
        """Returns the open connections."""
        return list(self.open)


class Http2Connection(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, server: Http2Server) -> None:
        self.lost = asyncio.Event()
        self._server = server
        self._http2 = H2Connection(_CONFIGURATION)
        self._streams: dict[int, _Stream] = {}
        self._may_write = asyncio.Event()
        self._paused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self.transport = transport
        self._server.open.add(self)
        self._http2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        for stream in list(self._streams.values()):
            stream.leave()
        self._server.open.discard(self)
        self.lost.set()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._http2.receive_data(data):
                self._receive(event)
        except ProtocolError:
            self._flush()
            self.transport.close()
            return
        self._flush()
        # A window, or the size of all windows, may have grown.
        self._may_write.set()

    def _receive(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=number, headers=headers):
                self._begin(number, dict(headers))
            case DataReceived(stream_id=number, data=data, flow_controlled_length=length):
                self._http2.acknowledge_received_data(length, number)
                if number in self._streams:
                    self._streams[number].body.put_nowait(data)
            case StreamEnded(stream_id=number) if number in self._streams:
                self._streams[number].receive_end()
            case StreamReset(stream_id=number) if number in self._streams:
                self._streams[number].leave()
            case _:
                # The library has answered every other frame.
                pass

    def _begin(self, number: int, headers: dict[bytes, bytes]) -> None:
        stream = self._streams[number] = _Stream(self, number)
        raw_path, _, query = headers[b":path"].partition(b"?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "2",
            "method": headers[b":method"].decode(),
            "scheme": "http",
            "path": unquote(raw_path.decode()),
            "raw_path": raw_path,
            "query_string": query,
            "headers": [
                (b"host", headers.get(b":authority", b"")),
                *((name, value) for name, value in headers.items() if not name.startswith(b":")),
            ],
            "state": {"connection": stream},
            "extensions": {"http.response.trailers": {}},
        }
        task = asyncio.get_running_loop().create_task(self._respond(stream, scope))
        stream.response_task = task
        self._server.tasks.add(task)
        task.add_done_callback(lambda _: self._end(stream, task))

    async def _respond(self, stream: "_Stream", scope: Scope) -> None:
        await self._server.app(scope, stream.receive, stream.send)

    def _end(self, stream: "_Stream", task: asyncio.Task[None]) -> None:
        """Forgets a stream whose application is done. A client that is still sending may stop."""
        self._server.tasks.discard(task)
        del self._streams[stream.number]
        if (stream.open or not stream.whole) and not self.transport.is_closing():
            self.reset(stream.number, ErrorCodes.INTERNAL_ERROR if stream.open else ErrorCodes.NO_ERROR)

    def send_head(self, number: int, headers: Headers, last: bool = False) -> None:
        """Sends a head or trailers; `last` ends the response."""
        self._http2.send_headers(number, list(headers), end_stream=last)
        self._flush()

    async def send_data(self, number: int, data: bytes) -> None:
        """Sends a part of the body as the client's windows allow."""
        while data:
            room = self._http2.local_flow_control_window(number)
            size = min(room, self._http2.max_outbound_frame_size, len(data))
            if size <= 0 or self._paused:
                self._may_write.clear()
                await self._may_write.wait()
                continue
            self._http2.send_data(number, data[:size])
            self._flush()
            data = data[size:]

    def end(self, number: int) -> None:
        """Ends a response without trailers."""
        self._http2.end_stream(number)
        self._flush()

    def reset(self, number: int, code: int) -> None:
        """Ends a stream with an error code."""
        self._http2.reset_stream(number, code)
        self._flush()

    def send_frames(self, frames: bytes) -> None:
        """Sends frames that the state of the connection does not know of."""
        self.transport.write(frames)

    async def cut(self, reset: bool) -> None:
        """Closes the connection now, by a reset or by a FIN, and returns when it is closed."""
        abort(self.transport, reset)
        await self.lost.wait()

    def _flush(self) -> None:
        self.transport.write(self._http2.data_to_send())


class _Stream:
    """One request and its response: what ASGI calls `receive` and `send`.

    `open`: the response has not ended. `whole`: nothing more of the request follows. The head waits for the next turn
    of the loop, so that a head without a body is one frame, as a status alone is in gRPC.
    """

    def __init__(self, connection: Http2Connection, number: int) -> None:
        self.number = number
        self.body: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.response_task: asyncio.Task[None] | None = None
        self.open = True
        self.whole = False
        self._connection = connection
        self._head: list[tuple[bytes, bytes]] | None = None
        self._trailers = False

    def receive_end(self) -> None:
        """Takes the end of the request's body."""
        self.whole = True
        self.body.put_nowait(None)

    async def receive(self) -> Message:
        data = await self.body.get()
        return {"type": "http.request", "body": data or b"", "more_body": data is not None}

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._head = [(b":status", b"%d" % message["status"]), *message["headers"]]
                self._trailers = message.get("trailers", False)
                asyncio.get_running_loop().call_soon(self._begin)
            case "http.response.body":
                await self._send_body(message.get("body", b""), last=not message.get("more_body", False))
            case "http.response.trailers":
                self._finish(message["headers"])
            case "http2.reset":
                self.open, self.whole = False, True
                self._connection.reset(self.number, message["code"])
            case "http2.frames":
                self._head = None
                self._connection.send_frames(message["write"](self.number))
            case kind:
                raise RuntimeError(f"a response has no message {kind}")

    def leave(self) -> None:
        """Ends the response, because its client has gone."""
        self.open, self.whole = False, True
        if self.response_task is not None:
            self.response_task.cancel()

    async def cut(self, reset: bool) -> None:
        """Closes the connection of the stream."""
        self.open = False
        self.response_task = None
        await self._connection.cut(reset)

    def _begin(self) -> None:
        """Sends the head, unless it has been sent."""
        if self._head is not None and self.open:
            self._connection.send_head(self.number, self._head)
            self._head = None

    async def _send_body(self, data: bytes, last: bool) -> None:
        ends = last and not self._trailers
        if ends and not data and self._head is not None:
            head, self._head = self._head, None
            self._finish(head)
            return
        self._begin()
        await self._connection.send_data(self.number, data)
        if ends:
            self.open = False
            self._connection.end(self.number)

    def _finish(self, headers: Headers) -> None:
        """Sends the last head: the trailers, or a head without a body."""
        self._begin()
        self.open = False
        self._connection.send_head(self.number, headers, last=True)
