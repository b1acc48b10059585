"""Reads the parameters of the inspector's routes, and writes their answers."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gateway.core.errors import InvalidRequest
from gateway.dialects.openapi import JSON
from gateway.inspector.views.page import Span
from gateway.recording.lines import RedactionLevel
from gateway.server.api.dialect_routes import read_client_body
from gateway.server.inspect.access import INSPECT

T = TypeVar("T")
API: Final = f"{INSPECT}/api"
# No page of another origin may read an answer, and nothing keeps a copy.
HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


def number(request: Request, name: str) -> int | None:
    """Returns a parameter that is a whole number, or None. Raises InvalidRequest."""
    value = request.query_params.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 18):
        raise InvalidRequest(f"{name} must be a whole number.", param=name)
    return int(value)


def reveals(request: Request) -> bool:
    """Returns whether the words of requests are asked for."""
    return request.query_params.get("reveal") == "1"


def span(request: Request) -> Span:
    """Returns the positions that are asked for. Raises InvalidRequest."""
    return Span(number(request, "from") or 0, number(request, "to"))


def level(request: Request) -> RedactionLevel:
    """Returns the level of redaction that is asked for. Raises InvalidRequest."""
    name = request.query_params.get("redact", "shape")
    for known in get_args(RedactionLevel):
        if name == known:
            found: RedactionLevel = known
            return found
    known_levels = ", ".join(get_args(RedactionLevel))
    raise InvalidRequest(f"Unknown level {name[:40]!r}. Known levels: {known_levels}.", param="redact")


async def read_value(request: Request, kind: type[T], most: int, what: str) -> T:
    """Returns the body of a request, JSON of at most so many bytes, as a value; `what` names it in the error. Raises
    InvalidRequest."""
    body = await read_client_body(request, most)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The {what} cannot be read: {error}.") from error


def json_response(value: Any, status: int = 200) -> Response:
    """Returns a value of any type that msgspec writes as JSON."""
    return Response(msgspec.json.encode(value), status, HEADERS, JSON)


def redacted_response(value: Any, redact: Callable[[str], str]) -> Response:
    """Returns a response as `json_response` does, without the secrets that `redact` takes out of its text."""
    return Response(redact(msgspec.json.encode(value).decode()), headers=HEADERS, media_type=JSON)
