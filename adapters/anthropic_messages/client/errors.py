"""Encodes a GatewayError as an error response of the API, or as the last event of a broken stream.

Source: Anthropic, API reference, errors: the type belongs to the status.
"""

import msgspec

from adapters.anthropic_messages.table import ERRORS
from gateway.core.context_length import OutputLimit, Overflow
from gateway.core.conversation import Json
from gateway.core.errors import IMAGE_REFUSED, BackendError, GatewayError
from gateway.dialect import ErrorAnswer


def encode_error(error: GatewayError, request_id: str) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet. It holds the violations, if any, beside the message."""
    return ErrorAnswer(error.status, error.headers, msgspec.json.encode(_error_object(error, request_id)))


def encode_error_event(error: GatewayError, request_id: str) -> bytes:
    """Returns the last event of a stream that failed after its start. No `message_stop` follows."""
    return b"event: error\ndata: " + msgspec.json.encode(_error_object(error, request_id, in_stream=True)) + b"\n\n"


def _error_object(error: GatewayError, request_id: str, *, in_stream: bool = False) -> dict[str, Json]:
    """Returns `{"type": "error", "error": {"type", "message", "param", "code", ...}, "request_id"}`."""
    message, code, param = error.text(in_stream=in_stream)
    message = _known_words(error, message)
    kind = ERRORS.words.get(error.status) or ("api_error" if error.status >= 500 else "invalid_request_error")
    body: dict[str, Json] = {"type": kind, "message": message, "param": param, "code": code, **error.extra}
    return {"type": "error", "error": body, "request_id": request_id or None}


def _known_words(error: GatewayError, message: str) -> str:
    """Returns the message in the words that Anthropic has for it, if any: clients know these alone. Claude Code
    shortens its history by what an overflow says, asks for as many tokens as a limit leaves, and leaves refused images
    out."""
    if error.extra.get("rule") == IMAGE_REFUSED:
        return f"Could not process image: {message}"
    match error.too_long if isinstance(error, BackendError) else None:
        case Overflow(counts=(tokens, limit)):
            return f"prompt is too long: {tokens} tokens > {limit} maximum"
        case OutputLimit(limit=limit, asked=int(asked)):
            return f"max_tokens: {asked} > {limit}, which is the maximum allowed number of output tokens for this model"
        case _:
            return message
