"""A refusal of whatever a connection brings -> the bytes of one whole response, the last on it."""

from typing import Final

import msgspec

_BODY: Final = b'{"error":{"message":"%b","type":"%b","param":null,"code":"%b"}}'


class Refusal(msgspec.Struct, frozen=True):
    """Status line, body and lines of the head that are its own."""

    status: bytes
    body: bytes
    lines: tuple[bytes, ...] = ()

    def encode(self, request_id: str) -> bytes:
        """The response for this request."""
        lines = (
            b"HTTP/1.1 " + self.status,
            b"content-type: application/json",
            b"content-length: %d" % len(self.body),
            b"connection: close",
            b"x-request-id: " + request_id.encode("ascii"),
            *self.lines,
        )
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


BAD_REQUEST: Final = Refusal(
    b"400 Bad Request",
    _BODY % (b"The request is not valid HTTP.", b"invalid_request_error", b"invalid_http"),
)
FULL: Final = Refusal(
    b"503 Service Unavailable",
    _BODY % (b"The gateway has no room for another connection.", b"server_error", b"overloaded"),
    (b"retry-after: 1",),
)
