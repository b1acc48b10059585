"""An answer, whole or streamed -> its way out; an error becomes a status or, later, one frame in the stream."""

from typing import Final

from starlette.types import Message

from gateway.dialects.openai_chat.errors import encode_error, encode_error_frame
from gateway.errors import GatewayError
from gateway.server.body import discard
from gateway.server.outlet import Headers, Outlet

LINGER_S: Final = 1
LINGER_BYTES: Final = 64 * 2**20
JSON: Final = b"application/json"
_STREAM: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Reply:
    """What goes back to one client. `status` is 0 until the head has been sent; `ended` says that nothing may follow.

    Every answer carries `x-request-id`. `intake` is the body of the request that is answered.
    """

    __slots__ = ("_flow", "_id", "_outlet", "connection", "ended", "intake", "status", "streaming")

    def __init__(self, outlet: Outlet, request_id: str) -> None:
        self._outlet = outlet
        self._flow = outlet.flow
        self.connection = outlet.connection
        self.intake = outlet.intake
        self._id = (b"x-request-id", request_id.encode("ascii"))
        self.status = 0
        self.streaming = False
        self.ended = False

    async def whole(self, status: int, body: bytes, headers: Headers = (), media_type: bytes = JSON) -> None:
        """Answer at once."""
        self.status = status
        self.ended = True
        head = [(b"content-type", media_type), (b"content-length", b"%d" % len(body)), self._id, *headers]
        if self._flow.write_paused:
            await self._outlet.ready()
        self._outlet.whole(status, head, body)

    async def refuse(self, error: GatewayError) -> None:
        """Answer while the client is still sending, and read on for a moment: a connection closed on unread bytes
        is reset, and the client may then never see the answer."""
        body = encode_error(error).body
        self.status = error.status
        self.ended = True
        head = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), self._id, *_pairs(error)]
        await self._outlet.ready()
        self._outlet.open(error.status, head)
        self._outlet.write(body)
        await discard(self.intake, LINGER_S, LINGER_BYTES)
        self._outlet.close()

    async def open(self, headers: Headers) -> None:
        """Begin a stream of server-sent events with status 200."""
        await self._outlet.ready()
        self._outlet.open(200, (*_STREAM, self._id, *headers))
        # Not sooner: whoever is interrupted while the client is slow can still answer with a status.
        self.status = 200
        self.streaming = True

    async def write(self, data: bytes) -> None:
        """Send whole events now. Waits while the client is slow."""
        if self._flow.write_paused:
            await self._outlet.ready()
        self._outlet.write(data)

    async def end(self, data: bytes = b"") -> None:
        """Send the last events and end the stream."""
        self.ended = True
        await self._outlet.ready()
        self._outlet.close(data)

    async def fail(self, error: GatewayError, headers: Headers = ()) -> None:
        """Tell the error in the way that is still open: a status (and headers) before the head, one frame without
        `[DONE]` after.

        Inside an answer that is neither, nothing can be said: the connection is cut by returning."""
        if self.ended:
            return
        if not self.status:
            await self.whole(error.status, encode_error(error).body, [*_pairs(error), *headers])
        elif self.streaming:
            await self.end(encode_error_frame(error))

    async def forward(self, message: Message) -> None:
        """The `send` for an application behind us: adds the request id and remembers how far it got."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), self._id]
        elif not message.get("more_body", False):
            self.ended = True
        await self._outlet.send(message)


def _pairs(error: GatewayError) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
