"""Encodes an error as the bytes of one whole response, the last on its connection."""

from typing import Final

import msgspec

_BODY: Final = b'{"error":{"message":"%b","type":"%b","param":null,"code":"%b"}}'


class RawErrorResponse(msgspec.Struct, frozen=True):
    """A status line, a body, and the header lines that belong to this error alone."""

    status: bytes
    body: bytes
    lines: tuple[bytes, ...] = ()

    def encode(self, request_id: str) -> bytes:
        """Returns the bytes of the response for this request."""
        lines = (
            b"HTTP/1.1 " + self.status,
            b"content-type: application/json",
            b"content-length: %d" % len(self.body),
            b"connection: close",
            b"x-request-id: " + request_id.encode("ascii"),
            *self.lines,
        )
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


BAD_REQUEST: Final = RawErrorResponse(
    b"400 Bad Request",
    _BODY % (b"The request is not valid HTTP.", b"invalid_request_error", b"invalid_http"),
)
FULL: Final = RawErrorResponse(
    b"503 Service Unavailable",
    _BODY % (b"The gateway has no room for another connection.", b"server_error", b"overloaded"),
    (b"retry-after: 1",),
)
