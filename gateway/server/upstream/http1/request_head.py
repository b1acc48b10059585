"""Encodes a method, a URL and headers as the head of a request."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from gateway.server.upstream.http.headers import Headers, Signer, check_header
from gateway.server.upstream.http.origin import Origin, Url

_LENGTH: Final = "content-length: "


class Lines(msgspec.Struct, frozen=True):
    """The head up to the value of Content-Length, and its address. `last`: it requests that the connection closes.
    `names` are those of its headers. `sign` returns further headers for a body, None: it has no signature."""

    address: Origin
    text: bytes
    last: bool
    names: frozenset[str]
    sign: Callable[[bytes], Headers] | None = None

    def __repr__(self) -> str:
        """Shows no values, of which one may be a key."""
        return f"Lines({self.address!r}, {sorted(self.names)})"


def encode_lines(method: str, url: Url, headers: Iterable[tuple[str, str]], signer: Signer | None = None) -> Lines:
    """Encodes the head without its end; of two headers with one name the later is sent. `signer` gets those that are
    sent, `host` among them. Raises ValueError for headers that cannot be sent."""
    sent = {"host": url.address.authority}
    for name, value in headers:
        check_header(name, value)
        sent[name.lower()] = value
    head = [f"{method} {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), _LENGTH]
    last = "close" in sent.get("connection", "").lower()
    sign = None if signer is None else partial(signer, sent)
    return Lines(url.address, "\r\n".join(head).encode("latin-1"), last, frozenset(sent), sign)


def encode_request(lines: Lines, body: bytes, more: Headers = ()) -> bytes:
    """Returns the whole request, signed where its head is. `more` are headers of this one alone."""
    if lines.sign is not None:
        more = (*more, *lines.sign(body))
    added = "".join([f"{name}: {value}\r\n" for name, value in more]).encode("latin-1") if more else b""
    return b"%b%d\r\n%b\r\n%b" % (lines.text, len(body), added, body)


def encode_upload_head(lines: Lines, length: int | None) -> bytes:
    """Returns the head of a request whose body follows piece by piece; `length` None: as chunks."""
    if length is not None:
        return b"%b%d\r\n\r\n" % (lines.text, length)
    return lines.text.removesuffix(_LENGTH.encode()) + b"transfer-encoding: chunked\r\n\r\n"
