"""Converts a text backend's error, a status with a body or part of a response, into the client's error."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.core.backend_status import CONTEXT_LENGTH_EXCEEDED, public_text, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendRejected, OwnWords
from gateway.framing.json_text import NotJson, decode_json

# llama.cpp: `exceed_context_size_error`; vLLM and similar servers: "maximum context length is"; TGI: "`inputs` tokens +
# `max_new_tokens` must be <="; others: "context window", "prompt is too long".
_OVERFLOW: Final = re.compile(
    r"exceed_context_size|context[ _](?:length|size|window)|prompt is too long|`?inputs`? (?:tokens|must have less)",
    re.IGNORECASE,
)
_MEANT: Final[Mapping[str, int]] = {"overloaded": 429, "incomplete_generation": 502, "validation": 422}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decode a response with a status other than 200. A prompt that does not fit is a 400 `context_length_exceeded`,
    whatever status the backend sent."""
    try:
        fields = _find(decode_json(body, lenient=True))
    except NotJson:
        return status_error(status, headers)
    message = _message(fields)
    if 400 <= status < 500 and _overflows(fields):
        return overflow(message)
    return status_error(status, headers, message=message, code=_text(fields.get("code")))


def reported_failure(failure: Json) -> BackendError:
    """Decode an error inside a response with status 200. It gets the status that it stands for, if it names one, else
    502."""
    fields = _find({"error": failure})
    message = _message(fields)
    if _overflows(fields):
        return overflow(message)
    code = fields.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        code = _MEANT.get(_text(fields.get("type")) or "")
    if code is not None and 400 <= code <= 599:
        return status_error(code, {}, message=message)
    error = BackendRejected("The backend reported an error in its response.")
    error.words = message or ""
    return error


def overflow(message: str | None) -> BackendError:
    """Create the error for a prompt that is longer than the model's context."""
    own = OwnWords("The conversation is longer than the model's context.", CONTEXT_LENGTH_EXCEEDED)
    sentence = public_text(message) if message else own.message
    error = BackendRejected(
        sentence, status=400, kind="invalid_request", code=CONTEXT_LENGTH_EXCEEDED, param="messages"
    )
    error.own_words = own
    return error


def _find(document: Json) -> Mapping[str, Json]:
    """Return the error fields: `{"error": {...}}`, `{"error": "..."}` with fields beside it, `{"detail": ...}`, or the
    fields themselves."""
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, dict):
        return error
    return {**document, "message": error, "type": document.get("error_type")} if isinstance(error, str) else document


def _message(fields: Mapping[str, Json]) -> str | None:
    detail = fields.get("detail")
    nested = detail.get("msg") if isinstance(detail, dict) else detail
    return _text(fields.get("message")) or _text(nested)


def _overflows(fields: Mapping[str, Json]) -> bool:
    words = (_text(fields.get(name)) or "" for name in ("type", "code", "message"))
    return any(_OVERFLOW.search(word[:2000]) for word in words)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
