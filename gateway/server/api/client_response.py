"""Sends a response to the client, whole or streamed; an error becomes a status or, once the stream has begun, one
frame."""

from typing import Final

from starlette.types import Message

from gateway.core.errors import GatewayError
from gateway.dialects.openai_chat.errors import encode_error, encode_error_frame
from gateway.server.http.read_body import discard
from gateway.server.http.response_writer import Headers, Writer

LINGER_S: Final = 1
LINGER_BYTES: Final = 64 * 2**20
JSON: Final = b"application/json"
_STREAM: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class ClientResponse:
    """The response to one client. `status` is 0 until the head has been sent; `ended` means that nothing may follow.

    Every response carries `x-request-id`. `request_body` is the body of the request.
    """

    __slots__ = ("_flow", "_id", "_writer", "connection", "ended", "request_body", "status", "streaming")

    def __init__(self, writer: Writer, request_id: str) -> None:
        self._writer = writer
        self._flow = writer.flow
        self.connection = writer.connection
        self.request_body = writer.request_body
        self._id = (b"x-request-id", request_id.encode("ascii"))
        self.status = 0
        self.streaming = False
        self.ended = False

    async def whole(self, status: int, body: bytes, headers: Headers = (), media_type: bytes = JSON) -> None:
        """Sends the whole response at once."""
        self.status = status
        self.ended = True
        head = [(b"content-type", media_type), (b"content-length", b"%d" % len(body)), self._id, *headers]
        if self._flow.write_paused:
            await self._writer.ready()
        self._writer.whole(status, head, body)

    async def refuse(self, error: GatewayError) -> None:
        """Responds while the client is still sending, and reads on for a moment: closing a connection with unread bytes
        resets it, and the client may then never see the response."""
        body = encode_error(error).body
        self.status = error.status
        self.ended = True
        head = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), self._id, *_pairs(error)]
        await self._writer.ready()
        self._writer.open(error.status, head)
        self._writer.write(body)
        await discard(self.request_body, LINGER_S, LINGER_BYTES)
        self._writer.close()

    async def open(self, headers: Headers, data: bytes) -> None:
        """Begins a stream of server-sent events with status 200 and these whole events."""
        if self._flow.write_paused:
            await self._writer.ready()
        self._writer.open(200, (*_STREAM, self._id, *headers), data)
        # Not sooner: a request that is interrupted while the client is slow can still be given an error status.
        self.status = 200
        self.streaming = True

    async def write(self, data: bytes) -> None:
        """Sends whole events now. Waits while the client is slow."""
        if self._flow.write_paused:
            await self._writer.ready()
        self._writer.write(data)

    async def end(self, data: bytes = b"") -> None:
        """Sends the last events and ends the stream."""
        self.ended = True
        await self._writer.ready()
        self._writer.close(data)

    async def fail(self, error: GatewayError, headers: Headers = ()) -> None:
        """Reports the error as the state of the response allows: as a status (and headers) before the head, as one
        frame without `[DONE]` after it.

        Inside a response that is neither unsent nor an event stream, no error can be reported: returning cuts the
        connection."""
        if self.ended:
            return
        if not self.status:
            await self.whole(error.status, encode_error(error).body, [*_pairs(error), *headers])
        elif self.streaming:
            await self.end(encode_error_frame(error))

    async def forward(self, message: Message) -> None:
        """Acts as `send` for the wrapped application: adds the request id and records how much of the response is
        sent."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), self._id]
        elif not message.get("more_body", False):
            self.ended = True
        await self._writer.send(message)


def _pairs(error: GatewayError) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
