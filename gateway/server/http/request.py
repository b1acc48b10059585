"""A method, a URL and headers -> the head of a request."""

import re
from functools import lru_cache
from typing import Final

import msgspec

from gateway.server.http.address import Url

# RFC 9110, sections 5.1 and 5.5. Whatever ends a line would let a value forge headers or a second request.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# What the client says by itself, since only it knows.
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "expect", "upgrade", "te", "trailer"})


class Lines(msgspec.Struct, frozen=True):
    """The head up to the number of the body's bytes. `last`: it asks for an end of the connection."""

    text: bytes
    last: bool


def is_header_value(value: str) -> bool:
    """Whether this can stand behind a header's name."""
    return _VALUE.fullmatch(value) is not None


def check_header(name: str, value: str) -> None:
    """Raises ValueError, which does not show the value, when this cannot be sent as a header."""
    if not _NAME.fullmatch(name) or name.lower() in _FRAMING:
        raise ValueError(f"{name[:100]!r} is no name of a header that can be set")
    if not is_header_value(value):
        raise ValueError(f"the value of the header {name[:100]!r} holds characters that no header can have")


# Requests to one backend have the same headers nearly always.
@lru_cache(maxsize=256)
def encode_lines(method: str, url: Url, headers: tuple[tuple[str, str], ...]) -> Lines:
    """The head without its end; of two headers with one name the later is sent. Raises ValueError for headers that
    cannot be sent."""
    for name, value in headers:
        check_header(name, value)
    sent = {"host": url.address.authority, **{name.lower(): value for name, value in headers}}
    head = [f"{method} {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "content-length: "]
    last = "close" in sent.get("connection", "").lower()
    return Lines("\r\n".join(head).encode("latin-1"), last)


def encode_request(lines: Lines, body: bytes) -> bytes:
    """The whole request."""
    return b"%b%d\r\n\r\n%b" % (lines.text, len(body), body)
