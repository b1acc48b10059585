"""Checks the form of a backend request: method, path, headers and media types, as the server can send them."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.adapter import BackendRequest

# Headers that the server adds to every request, from settings.json or by itself.
CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
TRANSPORT: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_HEADER_NAME: Final = re.compile(r"[a-z0-9_-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_PATH: Final = re.compile(r"(/(?!/)[\x21-\x7e]*)?")


def check_form(request: BackendRequest) -> None:
    """Raises AssertionError that names what the server could not send, or would add itself."""
    assert request.method in ("POST", "GET", "PUT"), f"the method {request.method!r}"
    assert _PATH.fullmatch(request.path) and ".." not in request.path, f"the path {request.path!r} is not relative"
    check_header_form(request.headers)
    assert not CREDENTIALS & set(request.headers), "credentials come from settings.json, never from an adapter"
    assert not TRANSPORT & set(request.headers), "the transport sets these headers itself"
    assert not request.body or "content-type" in request.headers, "a body without a content-type"
    assert request.accepts, "no media type is accepted"
    for media_type in request.accepts:
        assert _MEDIA_TYPE.fullmatch(media_type), f"{media_type!r} is not a bare lower-case media type"


def check_header_form(headers: Mapping[str, str]) -> None:
    """Raises AssertionError for a name or a value that the server could not send."""
    for name, value in headers.items():
        assert _HEADER_NAME.fullmatch(name), f"the header name {name!r} is not a lower-case token"
        assert _HEADER_VALUE.fullmatch(value), f"the value of {name} has characters that a header cannot carry"
