"""Converts a backend's error, a status with a body or an event of its stream, into the client's error.

Source: Anthropic, API reference, errors.
"""

from collections.abc import Mapping

from adapters.anthropic_messages.table import ERRORS
from adapters.openai.backend_errors import error_of, message_of
from gateway.core.backend_status import reported_error, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.framing.json_text import NotJson, decode_json


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decodes a response with a status other than 200. The message is forwarded where `status_error` lets a client read
    it."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return status_error(status, headers)
    error = error_of(document)
    return status_error(status, headers, message=message_of(error), code=_code_of(error), fields=error)


def reported_failure(event: Json) -> BackendError:
    """Decodes an error inside a response with status 200. It gets the status that its type stands for, else 502."""
    error = error_of(event)
    kind = error.get("type")
    status = ERRORS.values.get(kind) if isinstance(kind, str) else None
    return reported_error(status, message=message_of(error), code=_code_of(error), fields=error)


def _code_of(error: Mapping[str, Json]) -> str | None:
    """Returns the code. Only other servers of this API send one."""
    code = error.get("code")
    return code if isinstance(code, str) and code else None
