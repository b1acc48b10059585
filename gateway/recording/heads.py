"""Chooses what a recording may hold of the heads of requests and responses: no key stands in it."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode

from gateway.dialect import RequestHead
from gateway.recording.route import quoted_path

# The headers of clients that a recording may hold.
CLIENT_HEADERS: Final = frozenset(
    {"accept", "content-type", "content-length", "user-agent", "x-request-id"}
    | {"x-dragoman-explain", "x-dragoman-require", "x-dragoman-state"}
    | {"anthropic-version", "anthropic-beta", "openai-beta", "x-app", "x-stainless-lang", "x-stainless-package-version"}
)
# Those of backends, in the head or behind the body, and the beginnings of others.
BACKEND_HEADERS: Final = frozenset(
    {"content-type", "content-encoding", "content-length", "date", "retry-after", "retry-after-ms", "server"}
    | {"request-id", "x-request-id", "x-should-retry", "x-warp-error-code"}
)
BACKEND_PREFIXES: Final = ("grpc-", "x-ratelimit-", "anthropic-ratelimit-")
# The parameters of a query that say how to answer; any other may be a key.
QUERY: Final = frozenset({"alt", "beta", "api-version"})


def request_path(head: RequestHead) -> str:
    """Returns the path of a client's request with its query."""
    pairs = [pair for pair in parse_qsl(head.query.decode("latin-1"), keep_blank_values=True) if pair[0] in QUERY]
    return quoted_path(head.path) + ("?" + urlencode(pairs) if pairs else "")


def request_headers(head: RequestHead) -> dict[str, str]:
    """Returns the headers of a client's request."""
    named = headers_of(head.headers.items())
    return {name: value for name, value in named.items() if name in CLIENT_HEADERS}


def backend_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the headers or trailers of a backend's response."""
    return {name: value for name, value in headers.items() if _is_harmless(name)}


def headers_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns headers as text."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


def _is_harmless(name: str) -> bool:
    return name in BACKEND_HEADERS or name.startswith(BACKEND_PREFIXES)
