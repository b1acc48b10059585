"""A backend's error, as a status with a body or inside an answer, in; the error the client shall see out."""

from collections.abc import Mapping
from typing import Final

from gateway.backend_status import public_text, status_error
from gateway.errors import BackendError, BackendProtocolError, BackendRejected
from gateway.types import Json
from gateway.wire.json_text import NotJson, decode_json

# What providers write as `code` or `type` of an error inside a 200, and the status they mean by it.
_MEANT: Final[Mapping[str, int]] = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "too_many_requests": 429,
    "overloaded_error": 503,
    "server_overloaded": 503,
    "context_length_exceeded": 400,
    "content_policy_violation": 400,
}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """An answer other than 200. Message, code and param pass where `status_error` lets a client read them."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return status_error(status, headers)
    said = _find(document)
    error = status_error(status, headers, message=_message(said), code=_text(said.get("code")))
    if error.status == status < 500:
        error.param = _text(said.get("param"))
    return error


def reported_failure(said: Json) -> BackendError:
    """An `error` inside an answer whose status was 200: the status it means when it tells, else a 502."""
    fields = said if isinstance(said, dict) else {"message": said}
    code, kind = fields.get("code"), _text(fields.get("type"))
    status = code if isinstance(code, int) and not isinstance(code, bool) else _MEANT.get(_text(code) or kind or "")
    if status is not None and 400 <= status <= 599:
        return status_error(status, {}, message=_message(fields), code=_text(code) or kind)
    message = _message(fields)
    told = f": {public_text(message)}" if message else "."
    return BackendRejected(f"The backend reported an error in its answer{told}")


def invalid_event(reason: str) -> BackendProtocolError:
    """A chunk that breaks the wire format. The reason names places and kinds, never contents."""
    return BackendProtocolError(f"The backend sent a malformed chunk: {reason}.")


def _find(document: Json) -> dict[str, Json]:
    """The object that tells: `{"error": {...}}`, in a list as Gemini wraps it, or flat as some servers write it."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, dict):
        return error
    return {**document, "message": error} if isinstance(error, str) else document


def _message(said: Mapping[str, Json]) -> str | None:
    return _text(said.get("message")) or _text(said.get("detail"))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
