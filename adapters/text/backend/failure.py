"""Converts a text backend's error, a status with a body or part of a response, into the client's error."""

from collections.abc import Mapping
from typing import Final

from adapters.openai.backend_errors import error_of, message_of
from gateway.core.backend_status import reported_error, stated_status, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.json_body import text_in

_MEANT: Final[Mapping[str, int]] = {"overloaded": 429, "incomplete_generation": 502, "validation": 422}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decodes a response with a status other than 200. The message is forwarded where `status_error` lets a client read
    it."""
    try:
        fields = _find(decode_json(body, lenient=True))
    except NotJson:
        return status_error(status, headers)
    return status_error(status, headers, message=message_of(fields), code=text_in(fields.get("code")), fields=fields)


def reported_failure(failure: Json) -> BackendError:
    """Decodes an error inside a response with status 200. It gets the status that it stands for, if it names one, else
    502."""
    fields = _find({"error": failure})
    status = stated_status(fields.get("code")) or _MEANT.get(text_in(fields.get("type")) or "")
    return reported_error(status, message=message_of(fields), code=text_in(fields.get("code")), fields=fields)


def _find(document: Json) -> Mapping[str, Json]:
    """Returns the error fields; TGI names the type of a text `error` beside it."""
    fields = error_of(document)
    return {**fields, "type": fields["error_type"]} if "error_type" in fields else fields
