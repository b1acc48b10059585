"""Converts a response with a status other than 200 into the client's error, with the backend's message if suitable."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.warp.backend.decode.finish import QUOTA_SPENT
from gateway.core.backend_status import status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError

_MAX_BODY: Final = 64 * 1024

# A spent quota and an exceeded rate limit both have status 429. The header distinguishes them; with older backends only
# the wording does.
_NO_CREDITS: Final = "OUT_OF_CREDITS"
_NO_QUOTA_WORDS: Final = ("no remaining quota", "no ai requests remaining", "out of credits")

# The places of a message: the wording for users first, then problem details (RFC 9457), then the common places.
_MESSAGE_KEYS: Final = ("userDisplayMessage", "detail", "message", "title", "error")


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Returns the error for a response with this status; header names are lower case. Never raises, whatever the body
    is: a body that is not a JSON object (an HTML page of a proxy) gives no message."""
    document = _read_object(body)
    message = _find_message(document)
    spent = headers.get("x-warp-error-code", "").strip().upper() == _NO_CREDITS or _speaks_of_quota(message, body)
    if status == 429 and spent:
        return status_error(status, headers, message=message or QUOTA_SPENT, code="insufficient_quota")
    return status_error(status, headers, message=message, code=_find_code(document))


def _read_object(body: bytes) -> dict[str, Json]:
    try:
        value = msgspec.json.decode(body[:_MAX_BODY])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _find_message(document: dict[str, Json]) -> str | None:
    for key in _MESSAGE_KEYS:
        value = document.get(key)
        if isinstance(value, dict):
            value = value.get("message")
        if isinstance(value, str) and value.strip():
            return value
    return None


def _find_code(document: dict[str, Json]) -> str | None:
    """Returns the code beside the message, or in an `error` object as a proxy in front of the backend writes it."""
    error = document.get("error")
    for place in (document, error if isinstance(error, dict) else {}):
        if isinstance(code := place.get("code"), str):
            return code
    return None


def _speaks_of_quota(message: str | None, body: bytes) -> bool:
    words = (message or body[:_MAX_BODY].decode("utf-8", "replace")).lower()
    return any(wording in words for wording in _NO_QUOTA_WORDS)
