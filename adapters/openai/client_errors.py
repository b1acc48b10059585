"""Encodes a GatewayError as an OpenAI error response, or as the one error frame of a broken stream."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Json, Violation
from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.dialect import ErrorAnswer


class ErrorObject(Struct, frozen=True):
    """The error. `code` is stable and meant for programs, `message` for people; `param` names the faulty field.

    `violations` are the broken rules of the history.
    """

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "upstream_error", "server_error"]
    param: str | None
    code: str | None
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorObject


def encode_error(error: GatewayError) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet. It holds the violations, if any, beside the message."""
    return ErrorAnswer(error.status, error.headers, msgspec.json.encode(error_object(error)))


def encode_error_frame(error: GatewayError) -> bytes:
    """Returns the last event of a stream that failed after its start. No `[DONE]` follows: it would report success.

    Clients have no status by which to tell a failure that may pass: opencode, pi, cline and Continue look for words and
    the type `server_error`, and end the turn without them, where they would have gone on after a cut connection.
    """
    body = _fields(error, in_stream=True)
    if error.transient:
        kind = "rate limit" if error.status == 429 else "server error"
        body["message"] = f"Provider returned error {error.status} ({kind}): {body['message']}"
        body["type"] = "rate_limit_error" if error.status == 429 else "server_error"
    return b"data: " + msgspec.json.encode({"error": body}) + b"\n\n"


def error_object(error: GatewayError) -> dict[str, Json]:
    """Returns `{"error": {"message", "type", "param", "code", ...}}`."""
    return {"error": _fields(error)}


def _fields(error: GatewayError, *, in_stream: bool = False) -> dict[str, Json]:
    message, code, param = error.text(in_stream=in_stream)
    return {"message": message, "type": f"{error.kind}_error", "param": param, "code": code, **error.extra}
