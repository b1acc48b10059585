"""Converts an error object of OpenAI's APIs, behind a status or inside a response, into the client's error."""

from collections.abc import Mapping
from typing import Final

from gateway.core.backend_status import public_text, reported_error, stated_status, status_error
from gateway.core.context_length import CONTEXT_LENGTH_EXCEEDED
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendError
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.json_body import text_in

_MOST_DETAILS: Final = 8
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
    "content_policy_violation": 400,
    "invalid_prompt": 400,
}
# The status that each code of MiniMax stands for (its API reference, "Error codes"); any other one is a failure of its
# own.
_MINIMAX: Final[Mapping[int, int]] = {
    1001: 504,
    1002: 429,
    1004: 401,
    1008: 402,
    1026: 400,
    1027: 400,
    1039: 429,
    1041: 429,
    1042: 400,
    2013: 400,
    2045: 429,
    2049: 401,
    2056: 429,
}


def decode_failure(status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
    """Decodes a response with a status other than 200. Message, code and param are forwarded where `status_error` lets
    a client read them."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return status_error(status, headers)
    fields = error_of(document)
    error = status_error(status, headers, message=message_of(fields), code=text_in(fields.get("code")), fields=fields)
    if error.status == status < 500 and (param := text_in(fields.get("param"))):
        error.param = public_text(param)
    return error


def reported_failure(failure: Json) -> BackendError:
    """Decodes an `error` inside a response with status 200. It gets the status that it stands for, if it names one,
    else 502."""
    fields = failure if isinstance(failure, dict) else {"message": failure}
    code, kind = fields.get("code"), text_in(fields.get("type"))
    status = stated_status(code) or _MEANT.get(text_in(code) or kind or "")
    return reported_error(status, message=message_of(fields), code=text_in(code) or kind, fields=fields)


def minimax_failure(said: Json) -> BackendError | None:
    """Decodes the `base_resp` of a response of MiniMax, whose errors have status 200. Returns None for a success."""
    status = said.get("status_code") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(status, int) or status == 0:
        return None
    return reported_error(_MINIMAX.get(status, 502), message=message_of(said))


def error_of(document: Json) -> dict[str, Json]:
    """Returns the error object of a body: `{"error": {...}}`, the same in a list (Gemini), `base_resp` (MiniMax), or
    flat fields, among them a text `error` (xAI, LM Studio and other servers)."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    error = document.get("error") or document.get("base_resp")
    if isinstance(error, dict):
        return error
    return {**document, "message": error} if isinstance(error, str) else document


def message_of(fields: JsonObject) -> str | None:
    """Returns the message of an error object: of a list of details what each says, and of which field."""
    for value in (fields.get("message"), fields.get("detail"), fields.get("status_msg")):
        if words := _words(value):
            return words
    return None


def _words(value: Json) -> str:
    """Returns a text, or the texts of details as FastAPI and pydantic write them: `{"loc", "msg"}`, several of them in
    a list, or that list in an object `{"detail"}`."""
    match value:
        case str():
            return value
        case {"detail": detail}:
            return _words(detail)
        case {"msg": str(said), "loc": [*place]}:
            return f"{'.'.join(map(str, place))}: {said}"
        case {"msg": str(said)} | {"message": str(said)}:
            return said
        case [*details]:
            return "; ".join(filter(None, map(_words, details[:_MOST_DETAILS])))
        case _:
            return ""
