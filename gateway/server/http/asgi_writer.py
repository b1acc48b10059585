"""Serves a request of any ASGI server as `ClientResponse` expects it: the plain way beside our own HTTP protocol.

An ASGI server is asked with `await receive()` and written to with `await send(...)`, while a response is written here
without waiting. So two tasks stand between them: one feeds the request's body, the other sends the messages of the
response.
"""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.server.http.flow_control import FlowControl
from gateway.server.http.request_body import RequestBody
from gateway.server.http.response_writer import Headers


class AsgiConnection(asyncio.Transport):
    """Stands for the client's connection during one request. `on_lost` is called once when the client disconnects
    before its response is complete."""

    on_lost: Callable[[], None] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.flow = FlowControl(self)
        self.request_body = RequestBody(self, self.flow, expects_continue=False)
        self._reading = asyncio.Event()
        self._reading.set()

    async def read(self, receive: Receive) -> None:
        """Feeds the request's body, then waits until the client disconnects or the response is complete."""
        try:
            while (message := await receive())["type"] == "http.request":
                self.request_body.feed(message.get("body", b""))
                if not message.get("more_body", False):
                    self.request_body.close()
                await self._reading.wait()
        finally:
            self.lose()

    def lose(self) -> None:
        """Records that the client has disconnected, unless its response is complete."""
        if not self.request_body.over:
            self.request_body.end()
            self.flow.resume_writing()
            if self.on_lost is not None:
                self.on_lost()

    def cut(self) -> None:
        """Leaves the response as it is: the server closes the connection of an application that returns early."""
        self.request_body.end()

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()


class AsgiWriter:
    """One response, with the methods of `ResponseWriter`."""

    __slots__ = ("_messages", "connection", "flow", "request_body")

    def __init__(self, connection: AsgiConnection) -> None:
        self.connection = connection
        self.flow = connection.flow
        self.request_body = connection.request_body
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()

    async def ready(self) -> None:
        """Waits until the server has taken what was written."""
        if self.flow.write_paused and not self.request_body.over:
            await self.flow.drain()

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends the whole response at once."""
        self._head(status, headers)
        self.close(body)

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """Sends the head, and possibly a part of the body."""
        self._head(status, headers)
        self.write(body)

    def write(self, body: bytes) -> None:
        """Sends a part of the body."""
        if body:
            self._put({"type": "http.response.body", "body": body, "more_body": True})

    def close(self, body: bytes = b"") -> None:
        """Sends the last part of the body."""
        self._put({"type": "http.response.body", "body": body, "more_body": False})
        self.request_body.end()

    async def send(self, message: Message) -> None:
        """Implements the `send` of ASGI."""
        await self.ready()
        self._put(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.request_body.end()

    async def deliver(self, send: Send) -> None:
        """Sends what is written, until `finish`."""
        try:
            while (message := await self._messages.get()) is not None:
                await send(message)
                if self._messages.empty():
                    self.flow.resume_writing()
        except OSError:
            # A server may tell so that the client has disconnected (ASGI, HTTP, "Disconnected client").
            pass
        finally:
            self.connection.lose()

    def finish(self) -> None:
        """Ends `deliver` after what is written."""
        self._messages.put_nowait(None)

    def _head(self, status: int, headers: Headers) -> None:
        self._put({"type": "http.response.start", "status": status, "headers": [*headers]})

    def _put(self, message: Message) -> None:
        if not self.request_body.over:
            self._messages.put_nowait(message)
            self.flow.pause_writing()


def through_asgi(app: ASGIApp) -> ASGIApp:
    """Returns the application for any ASGI server, from one that finds its writer at `scope["state"]`."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        connection = AsgiConnection()
        writer = AsgiWriter(connection)
        state = {**scope.get("state", {}), "response_writer": writer}
        reading = asyncio.create_task(connection.read(receive))
        delivering = asyncio.create_task(writer.deliver(send))
        try:
            await app({**scope, "state": state}, connection.request_body.receive, writer.send)
            writer.finish()
            await delivering
        finally:
            reading.cancel()
            delivering.cancel()
            await asyncio.wait((reading, delivering))

    return serve
