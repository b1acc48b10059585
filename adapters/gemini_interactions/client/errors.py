"""Encodes a GatewayError as an error of the API, as a response or as the last event of a broken stream.

It is the error of Google's APIs but for the code, which is text here. Source: google-genai 3.6.1, `Error`.
"""

import msgspec

from adapters.gemini.client.errors import error_fields
from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.dialect import ErrorAnswer


def encode_error(error: GatewayError) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet. It holds the violations, if any, beside the message."""
    body = {"error": {**error_fields(error), "code": _code(error)}}
    return ErrorAnswer(error.status, error.headers, msgspec.json.encode(body))


def failure(error: GatewayError) -> dict[str, Json]:
    """Returns the error of a stream, whose status was 200."""
    return {"code": _code(error, in_stream=True), "message": error.text(in_stream=True).message}


def _code(error: GatewayError, *, in_stream: bool = False) -> str:
    return error.text(in_stream=in_stream).code or "internal_error"
