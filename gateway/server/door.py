"""The head of a request -> let in or refused, before a byte of its body is read."""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.errors import InvalidRequest

Head = Mapping[bytes, bytes]

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})


def is_loopback(host: str) -> bool:
    """Whether an address to bind to can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def keys_in(text: str) -> tuple[str, ...]:
    """The keys in a comma-separated list."""
    return tuple(key for part in text.split(",") if (key := part.strip()))


class Keys:
    """The clients' keys, as digests. No key: everybody is let in."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, head: Head) -> None:
        """Raises InvalidRequest 401. A wrong key takes as long as a right one and is told no more than none."""
        if not self._digests:
            return
        scheme, _, key = head.get(b"authorization", b"").partition(b" ")
        digest = hashlib.sha256(key.strip()).digest()
        known = False
        for candidate in self._digests:
            known |= hmac.compare_digest(digest, candidate)
        if not known or scheme.lower() != b"bearer":
            raise InvalidRequest(
                "A valid API key is needed: send it as 'Authorization: Bearer KEY'.",
                status=401,
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )


class Hosts:
    """The names under which a gateway bound to loopback may be addressed. None given: any name.

    A web page may point its own name at 127.0.0.1 (DNS rebinding); the Host header then still shows that name."""

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else frozenset(name.lower().encode() for name in names)

    def check(self, head: Head) -> None:
        """Raises InvalidRequest 421."""
        if self._names is None:
            return
        host = head.get(b"host", b"").lower()
        if host not in self._names and host.rpartition(b":")[0] not in self._names:
            raise InvalidRequest(
                "This host name is not served here; add it to server.allowed_hosts if it should be.",
                status=421,
                code="unknown_host",
            )


def check_site(head: Head) -> None:
    """Raises InvalidRequest 403 for what a foreign web page sends."""
    if head.get(b"sec-fetch-site", b"").lower() == b"cross-site":
        raise InvalidRequest(
            "Requests from web pages of other sites are refused.", status=403, code="cross_site_request"
        )


def check_media_type(head: Head) -> None:
    """Raises InvalidRequest 415 unless the body is plain JSON (a form could be posted by any web page)."""
    media_type = head.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != b"application/json":
        raise InvalidRequest("The content type must be application/json.", status=415, code="unsupported_media_type")
    if head.get(b"content-encoding", b"").strip().lower() not in (b"", b"identity"):
        raise InvalidRequest("The body must not be compressed.", status=415, code="unsupported_media_type")
