"""A text backend's error, as a status with a body or inside an answer, in; the error the client shall see out."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.backend_status import public_text, status_error
from gateway.errors import BackendError, BackendProtocolError, BackendRejected
from gateway.types import Json
from gateway.wire.json_text import NotJson, decode_json

CONTEXT: Final = "context_length_exceeded"

# llama.cpp: `exceed_context_size_error`; vLLM and its kin: "maximum context length is"; TGI: "`inputs` tokens +
# `max_new_tokens` must be <="; others: "context window", "prompt is too long".
_OVERFLOW: Final = re.compile(
    r"exceed_context_size|context[ _](?:length|size|window)|prompt is too long|`?inputs`? (?:tokens|must have less)",
    re.IGNORECASE,
)
_MEANT: Final[Mapping[str, int]] = {"overloaded": 429, "incomplete_generation": 502, "validation": 422}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """An answer other than 200. A prompt that does not fit is a 400 `context_length_exceeded`, whatever its status."""
    try:
        said = _find(decode_json(body, lenient=True))
    except NotJson:
        return status_error(status, headers)
    message = _message(said)
    if 400 <= status < 500 and _overflows(said):
        return overflow(message)
    return status_error(status, headers, message=message, code=_text(said.get("code")))


def reported_failure(said: Json) -> BackendError:
    """An error inside an answer whose status was 200: the status it means when it tells, else a 502."""
    fields = _find({"error": said})
    message = _message(fields)
    if _overflows(fields):
        return overflow(message)
    code = fields.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        code = _MEANT.get(_text(fields.get("type")) or "")
    if code is not None and 400 <= code <= 599:
        return status_error(code, {}, message=message)
    told = f": {public_text(message)}" if message else "."
    return BackendRejected(f"The backend reported an error in its answer{told}")


def overflow(message: str | None) -> BackendError:
    """The prompt is longer than the model's context."""
    told = public_text(message) if message else "The conversation is longer than the model's context."
    return BackendRejected(told, status=400, type="invalid_request_error", code=CONTEXT, param="messages")


def invalid_event(reason: str) -> BackendProtocolError:
    """An event that breaks the wire format. The reason names places and kinds, never contents."""
    return BackendProtocolError(f"The backend sent a malformed event: {reason}.")


def _find(document: Json) -> Mapping[str, Json]:
    """`{"error": {...}}`, `{"error": "..."}` with fields beside it, `{"detail": ...}`, or the fields themselves."""
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, dict):
        return error
    return {**document, "message": error, "type": document.get("error_type")} if isinstance(error, str) else document


def _message(said: Mapping[str, Json]) -> str | None:
    detail = said.get("detail")
    nested = detail.get("msg") if isinstance(detail, dict) else detail
    return _text(said.get("message")) or _text(nested)


def _overflows(said: Mapping[str, Json]) -> bool:
    words = (_text(said.get(name)) or "" for name in ("type", "code", "message"))
    return any(_OVERFLOW.search(word[:2000]) for word in words)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
