"""Encodes a method, a URL and headers as the head of a request."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.server.upstream.http1.origin import Origin, Url

# RFC 9110, sections 5.1 and 5.5. A line end in a value would allow it to forge headers or a second request.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Headers that only the client sets, since only it knows their values.
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "expect", "upgrade", "te", "trailer"})


class Lines(msgspec.Struct, frozen=True):
    """The head up to the value of Content-Length, and its address. `last`: it requests that the connection closes.
    `names` are those of its headers."""

    address: Origin
    text: bytes
    last: bool
    names: frozenset[str]

    def __repr__(self) -> str:
        """Shows no values, of which one may be a key."""
        return f"Lines({self.address!r}, {sorted(self.names)})"


def is_header_value(value: str) -> bool:
    """Returns whether the text is valid as a header value."""
    return _VALUE.fullmatch(value) is not None


def check_header(name: str, value: str) -> None:
    """Raises ValueError, which does not show the value, when the header cannot be sent."""
    if not _NAME.fullmatch(name) or name.lower() in _FRAMING:
        raise ValueError(f"{name[:100]!r} is not a header name that can be set")
    if not is_header_value(value):
        raise ValueError(f"the value of the header {name[:100]!r} contains characters that a header cannot have")


def encode_lines(method: str, url: Url, headers: Iterable[tuple[str, str]]) -> Lines:
    """Encodes the head without its end; of two headers with one name the later is sent. Raises ValueError for headers
    that cannot be sent."""
    sent = {"host": url.address.authority}
    for name, value in headers:
        check_header(name, value)
        sent[name.lower()] = value
    head = [f"{method} {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "content-length: "]
    last = "close" in sent.get("connection", "").lower()
    return Lines(url.address, "\r\n".join(head).encode("latin-1"), last, frozenset(sent))


def encode_request(lines: Lines, body: bytes, more: bytes = b"") -> bytes:
    """Returns the whole request. `more` are header lines of this one alone, each with its end."""
    return b"%b%d\r\n%b\r\n%b" % (lines.text, len(body), more, body)
