"""Converts an error of the API, a status with a body or part of a response, into the client's error."""

from collections.abc import Iterator, Mapping
from typing import Final

from adapters.openai.backend_errors import error_of, message_of
from gateway.core.backend_status import reported_error, stated_status, status_error
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendError
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.json_body import text_in

# A wrong key is a 400 of this reason.
KEY_REASONS: Final = frozenset({"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED"})
_UNAUTHORIZED: Final = 401


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decodes a response with a status other than 200. The message is forwarded where `status_error` lets a client read
    it."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return status_error(status, headers)
    # Without `alt=sse` the error of a stream is the element of an array.
    return _failure(status, headers, error_of(document))


def reported_failure(said: Json) -> BackendError:
    """Decodes an `error` inside a response with status 200. It gets the status that it stands for, else 502."""
    fields = said if isinstance(said, dict) else {"message": said}
    status = stated_status(fields.get("code"))
    if status is not None:
        return _failure(status, {}, fields)
    return reported_error(None, message=message_of(fields), fields=fields)


def _failure(status: int, headers: Mapping[str, str], said: JsonObject) -> BackendError:
    message = message_of(said)
    known = headers
    for detail in _details(said):
        if text_in(detail.get("reason")) in KEY_REASONS:
            status = _UNAUTHORIZED
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and "retry-after" not in headers:
            known = {**headers, "retry-after": delay.removesuffix("s")}
    # The API's own code is the status; other servers write a word.
    return status_error(status, known, message=message, code=text_in(said.get("code")), fields=said)


def _details(said: JsonObject) -> Iterator[JsonObject]:
    details = said.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield detail
