"""Encodes a GatewayError as an error of Google's APIs, as a response or as the end of a broken stream.

Source: Google Cloud APIs, "Errors": the canonical codes of HTTP statuses, and the types of `details`.
"""

from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.dialect import ErrorAnswer

_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPE: Final = "type.googleapis.com/google.rpc."
_DOMAIN: Final = "dragoman"


def encode_error(error: GatewayError) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet. It holds the violations, if any, beside the message."""
    return ErrorAnswer(error.status, error.headers, msgspec.json.encode(error_object(error)))


def error_object(error: GatewayError, *, in_stream: bool = False) -> dict[str, Json]:
    """Returns `{"error": {"code", "message", "status", "details", ...}}`. `in_stream`: for the end of a stream."""
    return {"error": error_fields(error, in_stream=in_stream)}


def error_fields(error: GatewayError, *, in_stream: bool = False) -> dict[str, Json]:
    """Returns the object inside `error`."""
    message, code, param = error.text(in_stream=in_stream)
    details: list[Json] = []
    if code is not None:
        details.append({"@type": f"{_TYPE}ErrorInfo", "reason": code, "domain": _DOMAIN})
    if param is not None:
        faulty: Json = [{"field": param, "description": message}]
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": faulty})
    if (seconds := error.headers.get("retry-after", "")).isdecimal():
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{seconds}s"})
    status = _STATUSES.get(error.status) or ("INVALID_ARGUMENT" if error.status < 500 else "INTERNAL")
    return {"code": error.status, "message": message, "status": status, "details": details, **error.extra}
