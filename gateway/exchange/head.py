"""Checks the head of a response: its status, and whether its media type is one that the decoder reads."""

from collections.abc import Mapping
from typing import Final

from gateway.adapter import Adapter, BackendRequest
from gateway.core.backend_status import names_model, names_resource, unknown_url
from gateway.core.errors import BackendError, BackendProtocolError

# A longer part of a body without a message does not fit into a log line.
SHOWN_BODY: Final = 4096


def status_error(
    adapter: Adapter, request: BackendRequest, model: str, status: int, headers: Mapping[str, str], body: bytes
) -> BackendError:
    """Returns the error for a response whose status is not 200. `model` is the name that the backend was sent."""
    error = adapter.decode_error(status, headers, body)
    # Of an HTML page, or an object without a message, the beginning says most.
    shown = body[:SHOWN_BODY].decode("utf-8", "replace")
    error.words = error.words or shown
    if error.code != "model_not_found":
        return error
    return _not_found(error, request, model, f"{shown} {error.words}")


def _not_found(error: BackendError, request: BackendRequest, model: str, words: str) -> BackendError:
    """Returns the error for a 404: of something that the request names, of the model, or of a wrong address."""
    if names_resource(words):
        error.code = "not_found"
        return error
    return error if names_model(words, model) else unknown_url(request.path, error.words)


def check_media_type(request: BackendRequest, headers: Mapping[str, str]) -> None:
    """Raises BackendProtocolError for another media type than the request accepts. Header names are lower case."""
    content_type = headers.get("content-type", "")
    if content_type in request.accepts:
        return
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type and media_type not in request.accepts:
        expected = " or ".join(request.accepts)
        raise BackendProtocolError(
            f"The backend responded with another media type than {expected}.", code="upstream_invalid_response"
        )
