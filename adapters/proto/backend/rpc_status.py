"""Maps a status of gRPC or Connect to the error that the client receives.

Sources: gRPC, "Status codes and their use in gRPC" and "gRPC over HTTP2" (percent-encoded `grpc-message`);
Connect protocol reference, "Error codes"; google/rpc/error_details.proto.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from adapters.gemini.backend.failure import KEY_REASONS
from adapters.proto.backend.status_details import NO_DETAILS, StatusDetails, connect_details, status_details
from adapters.text.backend.failure import decode_failure
from gateway.core.backend_status import NO_RETRY, reported_error, status_error
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.notices import Notice
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.json_body import text_in

OK: Final = "0"
# Each code with its name in Connect and the HTTP status whose row of `gateway.core.backend_status` it takes. 405 stands
# for a refusal that only the operator can change.
STATUSES: Final[Mapping[int, tuple[str, int]]] = {
    1: ("canceled", 502),
    2: ("unknown", 502),
    3: ("invalid_argument", 400),
    4: ("deadline_exceeded", 504),
    5: ("not_found", 404),
    6: ("already_exists", 409),
    7: ("permission_denied", 403),
    8: ("resource_exhausted", 429),
    9: ("failed_precondition", 400),
    10: ("aborted", 409),
    11: ("out_of_range", 400),
    12: ("unimplemented", 405),
    13: ("internal", 502),
    14: ("unavailable", 503),
    15: ("data_loss", 502),
    16: ("unauthenticated", 401),
}
_BY_NAME: Final = {name: code for code, (name, _) in STATUSES.items()}
_UNKNOWN: Final = 2
_UNIMPLEMENTED: Final = 12
_UNAUTHORIZED: Final = 401
_DELAYS: Final = frozenset({"retry-after", "retry-after-ms"})
_DATA_LOSS: Final = 15
_EXHAUSTED: Final = 8
_INVALID_ARGUMENT: Final = 3
# A quota without an end by waiting is exhausted; a rate limit calls itself by this name.
_RATE_LIMIT: Final = "RATE_LIMIT_EXCEEDED"
_TOO_LARGE: Final = re.compile(r"larger than max|message too large", re.IGNORECASE)
_MILLISECONDS: Final = re.compile(r"[0-9]{1,9}")


def grpc_error(headers: Mapping[str, str]) -> BackendError | None:
    """Returns the error that `grpc-status` among these headers or trailers reports, or None for OK. Names are in lower
    case. Raises BackendTruncated where there is no status: a response without one is never complete."""
    status = headers.get("grpc-status", "").strip()
    if status == OK:
        return None
    if not status:
        raise BackendTruncated("The backend's response ended without a status.")
    code = int(status) if status.isdecimal() and len(status) < 4 else _UNKNOWN
    pushback = headers.get("grpc-retry-pushback-ms", "").strip()
    patience = {"retry-after-ms": pushback} if _MILLISECONDS.fullmatch(pushback) else {}
    details = status_details(headers.get("grpc-status-details-bin", "").strip())
    return rpc_error(code, unquote(headers.get("grpc-message", ""), errors="replace"), patience, details)


def connect_end(body: bytes) -> BackendError | None:
    """Returns the error in the JSON that ends a stream of Connect, or None for an end without one. Raises
    BackendProtocolError for anything else than an object."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson as error:
        raise BackendProtocolError("The backend's end of the stream is not JSON.") from error
    if not isinstance(document, dict):
        raise BackendProtocolError("The backend's end of the stream is not a JSON object.")
    found = document.get("error")
    if found is None:
        return None
    fields = found if isinstance(found, dict) else {}
    code = _BY_NAME.get(text_in(fields.get("code")) or "", _UNKNOWN)
    return rpc_error(code, text_in(fields.get("message")) or "", {}, connect_details(fields.get("details")))


def connect_failure(body: bytes, headers: Mapping[str, str]) -> BackendError | None:
    """Returns the error in the body of a response other than 200, or None for a body that is not Connect's."""
    try:
        document = decode_json(body, lenient=True)
    except NotJson:
        return None
    code = _BY_NAME.get(text_in(document.get("code")) or "") if isinstance(document, dict) else None
    if code is None or not isinstance(document, dict):
        return None
    return rpc_error(code, text_in(document.get("message")) or "", headers, connect_details(document.get("details")))


def http_failure(status: int, headers: Mapping[str, str], body: bytes, *, connect: bool) -> BackendError:
    """Returns the error of an HTTP status other than 200: that of its `grpc-status` or of Connect's JSON, where there
    is one. Header names are lower case."""
    if headers.get("grpc-status"):
        return grpc_error(headers) or status_error(status, headers)
    failure = connect_failure(body, headers) if connect else None
    return failure or decode_failure(status, headers, body)


def rpc_error(
    code: int,
    message: str,
    headers: Mapping[str, str],
    details: StatusDetails = NO_DETAILS,
    *,
    word: str | None = None,
) -> BackendError:
    """Returns the error for a code other than OK; an unknown code counts as UNKNOWN. `headers` and `details` may tell
    the delay; the headers are those of the transport and win. `word` is the backend's own word for the error."""
    if details.delay_s is not None and not headers.keys() & _DELAYS:
        headers = {**headers, "retry-after": f"{details.delay_s:.3f}".rstrip("0").rstrip(".")}
    error = _error(code, message, headers, details, word)
    error.words = "; ".join(filter(None, (message, *details.words)))
    return error


def _error(
    code: int, message: str, headers: Mapping[str, str], details: StatusDetails, word: str | None
) -> BackendError:
    _, status = STATUSES.get(code, STATUSES[_UNKNOWN])
    if code == _DATA_LOSS:
        return BackendProtocolError(
            "The backend lost part of its response.", code="upstream_invalid_response", headers=NO_RETRY
        )
    if code == _INVALID_ARGUMENT and details.reason in KEY_REASONS:
        return status_error(_UNAUTHORIZED, headers)
    if status == 400:
        said = message or "; ".join(details.words)
        return reported_error(status, message=said, code=word, fields={"type": word})
    if code == _EXHAUSTED:
        if _TOO_LARGE.search(message[:2000]):
            return status_error(413, headers, message=message)
        exhausted = details.quota and details.delay_s is None and details.reason != _RATE_LIMIT
        return status_error(status, headers, message=message, code="insufficient_quota" if exhausted else word)
    error = status_error(status, headers, message=message, code=word)
    if code == _UNIMPLEMENTED:
        detail = "the backend does not implement the method (gRPC status 12); only the operator can correct this"
        error.notices = (*error.notices, Notice("backend", "failed", "METHOD_UNIMPLEMENTED", detail, level="error"))
    return error
