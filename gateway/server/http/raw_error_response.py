"""Encodes an error as the bytes of one whole response, the last on its connection."""

from http import HTTPStatus
from typing import Final

from gateway.core.errors import GatewayError, InvalidRequest
from gateway.dialect import ErrorAnswer

BAD_REQUEST: Final = InvalidRequest("The request is not valid HTTP.", code="invalid_http")
NO_ROOM: Final = GatewayError(
    "The gateway cannot accept another connection.", status=503, code="overloaded", headers={"retry-after": "1"}
)


def raw_error_response(answer: ErrorAnswer, request_id: str) -> bytes:
    """Returns the bytes of the response to the request with this id."""
    lines = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"content-type: {answer.media_type}",
        f"content-length: {len(answer.body)}",
        "connection: close",
        f"x-request-id: {request_id}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    )
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + answer.body
