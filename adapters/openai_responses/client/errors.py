"""Encodes a GatewayError as an OpenAI error response, or as the two events that end a failed stream."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import IMAGE_REFUSED, GatewayError
from gateway.dialect import ErrorAnswer

# Clients stop at these codes, or wait; at any other one some of them send the request again, several times.
_STOPPING_CODES: Final = frozenset(
    {"context_length_exceeded", "insufficient_quota", "usage_not_included", "invalid_prompt", "rate_limit_exceeded"}
)

# To Codex only 400 and 404 are final, and a 429 of the type or code `insufficient_quota`: for each of these statuses
# it sends a request six times, as often in vain. (A 401 stays: Codex asks for another token, other clients for a key.)
_FINAL_STATUSES: Final[Mapping[int, int]] = {402: 429, 403: 400, 413: 400, 422: 400}
_RATE_LIMIT: Final = "rate_limit_exceeded"


def encode_error(error: GatewayError) -> ErrorAnswer:
    """Returns the response if no byte has been sent yet. It holds the violations, if any, beside the message."""
    body = {"error": {**_error_fields(error), **error.extra}}
    status = _FINAL_STATUSES.get(error.status, error.status)
    return ErrorAnswer(status, error.headers, msgspec.json.encode(body))


def error_event(error: GatewayError) -> dict[str, Json]:
    """Returns the fields of the event `error`: at the top, where OpenAI's SDKs look for them in one form of the event,
    and in an object, where they look for them in the other."""
    fields = _error_fields(error, in_stream=True)
    return {name: fields[name] for name in ("code", "message", "param")} | {"error": fields}


def failure(error: GatewayError) -> dict[str, Json]:
    """Returns the `error` of a failed response. A request that cannot succeed has a code that no client retries."""
    message, code, _ = error.text(in_stream=True)
    if code == _RATE_LIMIT and (seconds := error.headers.get("retry-after", "")).isdecimal():
        # There are no headers any more: Codex waits as long as the message says.
        message = f"{message} Please try again in {seconds}s."
    if error.kind == "invalid_request" and code not in _STOPPING_CODES:
        code = "invalid_prompt"
    return {"code": code or "server_error", "message": message}


def _error_fields(error: GatewayError, *, in_stream: bool = False) -> dict[str, Json]:
    message, code, param = error.text(in_stream=in_stream)
    if error.extra.get("rule") == IMAGE_REFUSED:
        # By these Codex knows an image that it must not send again.
        code, param = "invalid_value", f"{param or 'input'}.image_url"
    return {"message": message, "type": f"{error.kind}_error", "param": param, "code": code}
