"""Converts an error object of OpenAI's APIs, behind a status or inside a response, into the client's error."""

from collections.abc import Mapping
from typing import Final

from gateway.core.backend_status import CONTEXT_LENGTH_EXCEEDED, public_text, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendRejected
from gateway.framing.json_text import NotJson, decode_json

# Servers of the same API that have another code for a prompt that is too long, or none: the type of llama.cpp, and the
# words of vLLM.
_TOO_LONG_TYPE: Final = "exceed_context_size_error"
_TOO_LONG_WORDS: Final = "maximum context length is"
# Maps what providers write as `code` or `type` of an error inside a 200 to the status that it stands for.
_MEANT: Final[Mapping[str, int]] = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "too_many_requests": 429,
    "overloaded_error": 503,
    "server_overloaded": 503,
    "server_is_overloaded": 503,
    "slow_down": 503,
    CONTEXT_LENGTH_EXCEEDED: 400,
    _TOO_LONG_TYPE: 400,
    "content_policy_violation": 400,
    "invalid_prompt": 400,
}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decode a response with a status other than 200. Message, code and param are forwarded where `status_error` lets a
    client read them."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return status_error(status, headers)
    fields = _find(document)
    error = status_error(status, headers, message=message_of(fields), code=_code_of(fields, status))
    if error.status == status < 500:
        error.param = public_text(param) if (param := _text(fields.get("param"))) else None
    return error


def reported_failure(failure: Json) -> BackendError:
    """Decode an `error` inside a response with status 200. It gets the status that it stands for, if it names one, else
    502."""
    fields = failure if isinstance(failure, dict) else {"message": failure}
    code, kind = fields.get("code"), _text(fields.get("type"))
    status = code if isinstance(code, int) and not isinstance(code, bool) else _MEANT.get(_text(code) or kind or "")
    if status is not None and 400 <= status <= 599:
        return status_error(status, {}, message=message_of(fields), code=_code_of(fields, status) or kind)
    error = BackendRejected("The backend reported an error in its response.")
    error.words = message_of(fields) or ""
    return error


def _code_of(fields: Mapping[str, Json], status: int) -> str | None:
    """Return the code of an error object: for a prompt that is longer than the model's context OpenAI's own, whichever
    server says it."""
    too_long = fields.get("type") == _TOO_LONG_TYPE or _TOO_LONG_WORDS in (message_of(fields) or "")
    return CONTEXT_LENGTH_EXCEEDED if too_long and 400 <= status < 500 else _text(fields.get("code"))


def _find(document: Json) -> dict[str, Json]:
    """Return the error object: `{"error": {...}}`, the same in a list (Gemini), or flat fields (some servers)."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, dict):
        return error
    return {**document, "message": error} if isinstance(error, str) else document


def message_of(fields: Mapping[str, Json]) -> str | None:
    """Return the message of an error object."""
    return _text(fields.get("message")) or _text(fields.get("detail"))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
