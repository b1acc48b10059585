"""Encodes a GatewayError as an error of Ollama: as the body of a response, or as the last line of a broken stream."""

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.dialect import ErrorAnswer


def encode_error(error: GatewayError) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet."""
    return ErrorAnswer(error.status, error.headers, msgspec.json.encode(error_object(error)))


def encode_error_line(error: GatewayError) -> bytes:
    """Returns the last line of a stream that failed after its start. None with `done: true` follows."""
    return msgspec.json.encode(error_object(error, in_stream=True)) + b"\n"


def error_object(error: GatewayError, *, in_stream: bool = False) -> dict[str, Json]:
    """Returns `{"error": text}`, which is all that clients of Ollama read, and the facts for programs beside it."""
    message, code, param = error.text(in_stream=in_stream)
    return {"error": message, "code": code, "param": param, **error.extra}
