"""Says in a few words what became of a request, by its code and status: the words of a row, in one table."""

from collections.abc import Mapping
from typing import Final

# The code of an error -> what happened. Those of a backend's own, and all others, are told by their status.
OUTCOMES: Final[Mapping[str, str]] = {
    "client_gone": "client left",
    "context_length_exceeded": "prompt too long",
    "insufficient_quota": "quota used up",
    "internal_error": "gateway failed",
    "invalid_api_key": "no valid client key",
    "method_not_allowed": "refused",
    "model_not_allowed": "model not allowed",
    "model_not_found": "unknown model",
    "overloaded": "gateway too busy",
    "rate_limit_exceeded": "too many requests",
    "request_timeout": "request came too slowly",
    "request_too_large": "request too large",
    "server_shutdown": "gateway stopped",
    "store_unavailable": "store not reached",
    "upstream_auth_error": "backend refused the credential",
    "upstream_connection_error": "backend not reached",
    "upstream_empty_answer": "backend said nothing",
    "upstream_error": "backend failed",
    "upstream_overloaded": "backend overloaded",
    "upstream_redirect": "backend moved",
    "upstream_stream_truncated": "answer broke off",
    "upstream_timeout": "backend too slow",
    "upstream_tls_error": "backend not trusted",
    "upstream_unknown_url": "no such address",
}
# The phase of a request that is served -> what it waits for.
_PHASES: Final[Mapping[str, str]] = {
    "request": "being read",
    "connect": "connecting",
    "head": "waiting",
    "stream": "answering",
}


def outcome_of(status: int, code: str) -> str:
    """Returns what became of a request that has ended; `code` is empty for one that did not fail."""
    if code in OUTCOMES:
        return OUTCOMES[code]
    if code.startswith("upstream_"):
        return "answer cannot be read"
    if status >= 500:
        return "failed"
    if code or status >= 400:
        return "refused"
    return "answered"


def phase_name(phase: str) -> str:
    """Returns what a request that is served waits for."""
    return _PHASES.get(phase, "being served")
