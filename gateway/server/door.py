"""The head of a request -> let in or refused, before a byte of its body is read."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.errors import InvalidRequest

Head = Mapping[bytes, bytes]

JSON: Final = b"application/json"
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
# What is decided from these must not depend on which of two lines somebody reads.
SINGLE: Final = frozenset(
    {b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"sec-fetch-site"}
)
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})


def is_loopback(host: str) -> bool:
    """Whether an address to bind to can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
        if host.rpartition(b":")[0] not in self._names and host not in self._names:
            raise InvalidRequest(
                "This host name is not served here; add it to server.allowed_hosts if it should be.",
                status=421,
                code="unknown_host",
            )


def check_single(lines: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises InvalidRequest 400 when a line that decides something is there twice."""
    seen: set[bytes] = set()
    for name, _ in lines:
        if name in seen:
            raise InvalidRequest(f"There are two {name.decode('ascii')} headers.", code="duplicate_header")
        if name in SINGLE:
            seen.add(name)


def check_site(head: Head) -> None:
    """Raises InvalidRequest 403 for what a foreign web page sends."""
    if b"sec-fetch-site" in head and head[b"sec-fetch-site"].lower() == b"cross-site":
        raise InvalidRequest(
            "Requests from web pages of other sites are refused.", status=403, code="cross_site_request"
        )


def check_media_type(head: Head) -> None:
    """Raises InvalidRequest 415 unless the body is plain JSON (a form could be posted by any web page)."""
    media_type = head.get(b"content-type", b"")
    if media_type != JSON and media_type.partition(b";")[0].strip().lower() != JSON:
        raise InvalidRequest("The content type must be application/json.", status=415, code="unsupported_media_type")
    if b"content-encoding" in head and head[b"content-encoding"].strip().lower() not in (b"", b"identity"):
        raise InvalidRequest("The body must not be compressed.", status=415, code="unsupported_media_type")
