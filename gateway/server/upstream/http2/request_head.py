"""Encodes a method, a URL and headers as the fields of a request (RFC 9113, section 8.3.1)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import msgspec

from gateway.server.upstream.http.headers import Headers, Signer, check_header
from gateway.server.upstream.http.origin import Origin, Url

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

# RFC 9113, section 8.2.2: they concern a connection of HTTP/1.1. `:authority` replaces `host`.
_LEFT_OUT: Final = frozenset({"connection", "keep-alive", "proxy-connection", "host"})


class RequestFields(msgspec.Struct, frozen=True):
    """The fields of a request and its address. `names` are those of its headers. `sign` returns further headers for a
    body, None: it has no signature."""

    address: Origin
    fields: Fields
    names: frozenset[str]
    sign: Callable[[bytes], Headers] | None = None

    def __repr__(self) -> str:
        """Shows no values, of which one may be a key."""
        return f"RequestFields({self.address!r}, {sorted(self.names)})"


class Http2Request(NamedTuple):
    """One request. An empty body is not sent."""

    fields: Fields
    body: bytes


def encode_fields(
    method: str, url: Url, headers: Iterable[tuple[str, str]], signer: Signer | None = None
) -> RequestFields:
    """Encodes the fields; of two headers with one name the later is sent. `signer` gets those that are sent, and as
    `host` what is sent as `:authority`. Raises ValueError for headers that cannot be sent."""
    sent = {"host": url.address.authority}
    for name, value in headers:
        check_header(name, value)
        sent[name.lower()] = value
    pseudo = {":method": method, ":scheme": url.address.scheme, ":authority": sent["host"], ":path": url.path}
    # Without it a proxy may drop trailers (RFC 9110, section 10.1.4).
    own = {name: value for name, value in sent.items() if name not in _LEFT_OUT}
    fields = {**pseudo, **own, "te": "trailers"}
    sign = None if signer is None else partial(signer, {"host": sent["host"], **own})
    return RequestFields(url.address, _encoded(fields.items()), frozenset(sent), sign)


def encode_http2_request(head: RequestFields, body: bytes, more: Headers = ()) -> Http2Request:
    """Returns the whole request, signed where its head is. `more` are headers of this one alone."""
    if head.sign is not None:
        more = (*more, *head.sign(body))
    return Http2Request(head.fields + _encoded(more), body)


def _encoded(fields: Iterable[tuple[str, str]]) -> Fields:
    return tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in fields)
