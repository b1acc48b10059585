"""Sends a response to the client, whole or streamed; an error becomes a status or, once the stream has begun, one
frame."""

from collections.abc import Callable
from typing import Final

from starlette.types import Message

from gateway.core.errors import GatewayError
from gateway.dialect import Dialect, ErrorAnswer, StreamEncoder
from gateway.server.http.read_body import discard
from gateway.server.http.response_writer import Headers, Writer

LINGER_S: Final = 1
LINGER_BYTES: Final = 64 * 2**20
JSON: Final = b"application/json"
REQUEST_ID: Final = b"x-request-id"


class ClientResponse:
    """The response to one client. `status` is 0 until the head has been sent; `ended` means that nothing may follow;
    `write` sends whole events now.

    Every response carries the `id` of its request as `x-request-id`. `request_body` is the body of the request;
    `dialect` encodes errors.
    """

    __slots__ = (
        "_dialect",
        "_encoder",
        "_ids",
        "_writer",
        "connection",
        "ended",
        "flow",
        "id",
        "request_body",
        "status",
        "write",
    )

    def __init__(self, writer: Writer, dialect: Dialect, request_id: str) -> None:
        self._writer = writer
        self.write = writer.write
        self._dialect = dialect
        self.flow = writer.flow
        self.connection = writer.connection
        self.request_body = writer.request_body
        self.id = request_id
        encoded_id = request_id.encode("ascii")
        self._ids = [(REQUEST_ID, encoded_id)]
        for name in dialect.request_id_headers:
            self._ids.append((name, encoded_id))
        self.status = 0
        self._encoder: StreamEncoder | None = None
        self.ended = False

    def wrap(self, wrap: Callable[[Writer], Writer]) -> None:
        """Lets another writer write everything from now on: the one that is returned for the present one."""
        self._writer = wrap(self._writer)

    async def whole(self, status: int, body: bytes, headers: Headers = (), media_type: bytes = JSON) -> None:
        """Sends the whole response at once."""
        self.status = status
        self.ended = True
        head = self._head(body, media_type, headers)
        if self.flow.write_paused:
            await self._writer.ready()
        self._writer.whole(status, head, body)

    async def refuse(self, error: GatewayError) -> None:
        """Responds while the client is still sending, and reads on for a moment: closing a connection with unread bytes
        resets it, and the client may then never see the response."""
        answer = self._dialect.encode_error(error, self.id)
        self.status = answer.status
        self.ended = True
        await self._writer.ready()
        self._writer.open(answer.status, self._head(answer.body, answer.media_type.encode(), _pairs(answer)))
        self._writer.write(answer.body)
        await discard(self.request_body, LINGER_S, LINGER_BYTES)
        self._writer.close()

    async def open(self, headers: Headers, data: bytes, encoder: StreamEncoder) -> None:
        """Begins a stream with status 200 and these whole events. The encoder reports an error in it."""
        if self.flow.write_paused:
            await self._writer.ready()
        self._writer.open(200, (*encoder.headers, *self._ids, *headers), data)
        # Not sooner: a request that is interrupted while the client is slow can still be given an error status.
        self.status = 200
        self._encoder = encoder

    async def pass_on(self, status: int, headers: Headers) -> None:
        """Begins a response that a backend has made: `write` sends it as it comes. No error can be reported in it."""
        if self.flow.write_paused:
            await self._writer.ready()
        self._writer.open(status, (*self._ids, *headers))
        self.status = status

    async def ready(self) -> None:
        """Waits while the client is slow. On the hot path, check `flow.write_paused` first."""
        await self._writer.ready()

    async def end(self, data: bytes = b"") -> None:
        """Sends the last events and ends the stream."""
        self.ended = True
        await self._writer.ready()
        self._writer.close(data)

    async def fail(self, error: GatewayError, headers: Headers = ()) -> None:
        """Reports the error as the state of the response allows: as a status (and headers) before the head, as the
        last bytes of a stream after it.

        Inside a response that is neither unsent nor a stream, no error can be reported: returning cuts the
        connection."""
        if self.ended:
            return
        if not self.status:
            answer = self._dialect.encode_error(error, self.id)
            await self.whole(answer.status, answer.body, [*_pairs(answer), *headers], answer.media_type.encode())
        elif self._encoder is not None:
            await self.end(self._encoder.fail(error))

    async def forward(self, message: Message) -> None:
        """Acts as `send` for the wrapped application: adds the request id and records how much of the response is
        sent."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._ids]
        elif not message.get("more_body", False):
            self.ended = True
        await self._writer.send(message)

    def _head(self, body: bytes, media_type: bytes, headers: Headers) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", media_type), (b"content-length", b"%d" % len(body)), *self._ids, *headers]


def _pairs(answer: ErrorAnswer) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in answer.headers.items()]
