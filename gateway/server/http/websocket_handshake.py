"""Reads the head with which a client asks for a WebSocket, and writes the one that accepts it (RFC 6455, section 4.2;
RFC 7692). Loaded with the first upgrade. No IO."""

import base64
import binascii
from typing import Final

from wsproto.utilities import generate_accept_token

from gateway.server.http.response_writer import Headers
from gateway.server.http.websocket_deflate import BoundedDeflate, accepted_deflate

_VERSION: Final = b"13"
_NONCE: Final = 16
_OF_BODIES: Final = frozenset({b"content-length", b"transfer-encoding"})


def is_upgrade(headers: Headers) -> bool:
    """Returns whether a head, which names the protocol `websocket`, is otherwise that of an opening handshake (RFC
    6455, section 4.2.1), and has no body."""
    found = _by_name(headers)
    if (
        found.get(b"sec-websocket-version") != [_VERSION]
        or found.keys() & _OF_BODIES
        or len(found.get(b"host", [])) != 1
    ):
        return False
    keys = found.get(b"sec-websocket-key", [])
    try:
        return len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == _NONCE
    except binascii.Error:
        return False


def accept(headers: Headers, most: int, own: Headers) -> tuple[BoundedDeflate | None, bytes]:
    """Returns the extension of an accepted WebSocket, if its client offers it, and the head that says so, with the
    gateway's `own` headers. A message inflates to `most` bytes at most."""
    found = _by_name(headers)
    deflate, accepted = accepted_deflate(found.get(b"sec-websocket-extensions", []), most)
    head = [
        b"HTTP/1.1 101 Switching Protocols",
        b"upgrade: websocket",
        b"connection: Upgrade",
        b"sec-websocket-accept: " + generate_accept_token(found[b"sec-websocket-key"][0]),
    ]
    if deflate is not None:
        head.append(b"sec-websocket-extensions: " + accepted)
    head += map(b": ".join, own)
    return deflate, b"\r\n".join(head) + b"\r\n\r\n"


def _by_name(headers: Headers) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return found
