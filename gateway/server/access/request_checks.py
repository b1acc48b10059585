"""Checks the head of a request before any byte of its body is read."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from gateway.core.errors import InvalidRequest

Head = Mapping[bytes, bytes]

JSON: Final = b"application/json"
# The words of what a request may not lose.
REQUIRE: Final = b"x-dragoman-require"
LOCAL_NAME: Final = "localhost"
# What nearly every request to a gateway on loopback names; other literals are parsed.
LOCAL_HOSTS: Final = (LOCAL_NAME, "127.0.0.1", "[::1]")
# A name or the literal of an address, and a port (RFC 9110, section 7.2).
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
# Decisions about these headers must not depend on which of two lines a reader uses.
SINGLE: Final = frozenset(
    {b"content-encoding", b"content-length", b"content-type", b"host", b"origin", b"sec-fetch-site"}
    | {b"x-dragoman-state", REQUIRE}
)
_SAME: Final = (b"same-origin", b"none")
ALIVE: Final = "/healthz"
READY: Final = "/readyz"
OPEN_PATHS: Final = frozenset({ALIVE, READY})
START_PAGE: Final = "/"


def is_loopback(host: str) -> bool:
    """Returns whether a host, `localhost` or the literal of an address, is reachable from this machine only."""
    if host == LOCAL_NAME:
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # From Python 3.13 on an IPv4 address in the form of IPv6 counts, too; no client on this machine needs that form.
    mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
    return address.is_loopback and not mapped


class HostFilter:
    """The Host names that a gateway bound to loopback accepts: `localhost`, these names, and the literals of loopback
    addresses. With `None` it accepts any.

    A web page may point its own name at 127.0.0.1 (DNS rebinding); the Host header then still shows that name. It
    cannot point the literal of an address elsewhere."""

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else frozenset((*LOCAL_HOSTS, *(name.lower() for name in names)))

    def check(self, head: Head) -> None:
        """Raises InvalidRequest 421 for a Host that is not accepted."""
        if self._names is None:
            return
        host = head.get(b"host", b"").decode("latin-1").lower()
        parts = _HOST.fullmatch(host)
        if host not in self._names and (parts is None or not (parts[1] in self._names or is_loopback(parts[1]))):
            raise InvalidRequest(
                "This host name is not allowed. To allow it, add it to server.allowed_hosts.",
                status=421,
                code="unknown_host",
            )


def check_single(lines: Iterable[tuple[bytes, bytes]], key_headers: Collection[bytes]) -> None:
    """Raises InvalidRequest 400 when a header that a check depends on occurs twice, those of keys among them."""
    seen: set[bytes] = set()
    for name, _ in lines:
        if name in seen:
            raise InvalidRequest(f"The request has two {name.decode('ascii')} headers.", code="duplicate_header")
        if name in SINGLE or name in key_headers:
            seen.add(name)


def check_site(head: Head) -> None:
    """Raises InvalidRequest 403 for a request of a foreign web page."""
    if b"sec-fetch-site" in head and head[b"sec-fetch-site"].lower() == b"cross-site":
        raise InvalidRequest(
            "Requests from web pages of other sites are refused.", status=403, code="cross_site_request"
        )


def check_origin(head: Head) -> None:
    """Raises InvalidRequest 403 for a request of a web page of another origin, another port of this machine among them.
    An older browser, without Sec-Fetch-Site, names the page's origin, which is `null` or has the authority of the
    request's Host (RFC 6454)."""
    site = head.get(b"sec-fetch-site")
    if site is not None:
        foreign = site.lower() not in _SAME
    else:
        origin = head.get(b"origin")
        foreign = origin is not None and origin.partition(b"://")[2].lower() != head.get(b"host", b"").lower()
    if foreign:
        raise InvalidRequest(
            "Requests from web pages of other origins are refused.", status=403, code="cross_site_request"
        )


def check_upgrade_origin(head: Head) -> None:
    """Raises InvalidRequest 403 for an upgrade by a web page that is not the gateway's own, whatever else its browser
    says: browsers let any page open a WebSocket anywhere, without asking the server before (RFC 6455, section 10.2)."""
    origin = head.get(b"origin")
    if origin is None:
        return
    scheme, _, authority = origin.lower().partition(b"://")
    if scheme not in (b"http", b"https") or authority != head.get(b"host", b"").lower():
        raise InvalidRequest(
            "WebSockets of web pages of other origins are refused.", status=403, code="cross_site_request"
        )


def check_media_type(head: Head) -> None:
    """Raises InvalidRequest 415 unless the body is JSON (any web page could post a form)."""
    media_type = head.get(b"content-type", b"")
    if media_type != JSON and media_type.partition(b";")[0].strip().lower() != JSON:
        message = "The content type must be application/json: send the header Content-Type: application/json."
        raise InvalidRequest(message, status=415, code="unsupported_media_type")


def is_start_page(method: str, path: str, head: Head) -> bool:
    """Returns whether a request is that of a browser for the start page."""
    return method == "GET" and path == START_PAGE and _accepts_html(head.get(b"accept", b""))


def _accepts_html(accept: bytes) -> bool:
    """Returns whether an Accept header names HTML itself: wildcards are what programs send."""
    for choice in accept.lower().split(b","):
        media_type, *parameters = (part.strip() for part in choice.split(b";"))
        if media_type == b"text/html":
            return all(not part.startswith(b"q=") or part[2:].strip(b"0.") for part in parameters)
    return False
