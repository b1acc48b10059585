"""Decides who may look at the requests of others: the holder of the admin key or, where there is none, this machine
alone."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.server.access.request_checks import Head, check_origin, is_loopback
from gateway.settings import Settings

# Everything of the inspector is below this path.
INSPECT: Final = "/inspect"
# These show the names and the counts of all clients: where there is an admin key, no client's key opens them.
OPERATOR_PATHS: Final = frozenset({"/v1/events", "/metrics"})
# What the page is made of, which is no secret.
ASSETS: Final = f"{INSPECT}/assets/"
# What a proxy adds for whom it asks (RFC 7239, and what was there before it).
_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")


def inspector_off(settings: Settings) -> InvalidRequest:
    """Returns the error where nobody may look, which says what opens the inspector."""
    advice = (
        'Set inspector.enabled to "loopback" or "on" and restart.'
        if settings.inspector.enabled == "off"
        else f"Set {settings.inspector.admin_key_env} and restart. Without an admin key it serves only a gateway on "
        "loopback that has no client keys and no server.allowed_hosts, and nobody behind a proxy."
    )
    return InvalidRequest(f"The inspector is off. {advice}", status=404, code="inspector_off")


def is_inspected(path: str) -> bool:
    """Returns whether a path is one of the inspector."""
    return path == INSPECT or path.startswith(f"{INSPECT}/")


def is_page(path: str) -> bool:
    """Returns whether a path is one of the page itself, which asks for no key."""
    return path in (INSPECT, f"{INSPECT}/") or path.startswith(ASSETS)


class InspectorAccess:
    """Checks requests for the inspector. A client's key never opens it."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Raises SettingsError where the inspector is `on` without an admin key."""
        self._variable = settings.inspector.admin_key_env
        key = environ.get(self._variable, "").strip()
        self.key = key
        self._digest = hashlib.sha256(key.encode()).digest() if key else b""
        self.enabled = settings.inspector.enabled != "off"
        if settings.inspector.enabled == "on" and not key:
            raise SettingsError(f"inspector.enabled is on, which needs an admin key: set {self._variable}")

    def is_open(self, settings: Settings, keys: bool) -> bool:
        """Returns whether somebody may look. `keys`: there are client keys."""
        return self.enabled and (bool(self._digest) or _is_local(settings, keys))

    def check(self, path: str, head: Head, settings: Settings, keys: bool) -> None:
        """Raises InvalidRequest: 404 where nobody may look, 401 without the admin key (which the page itself does not
        need), and 403 for a web page of another origin, another port of this machine among them."""
        if not self.is_open(settings, keys) or (not self._digest and _is_forwarded(head)):
            raise inspector_off(settings)
        check_origin(head)
        if self._digest and not is_page(path):
            self.check_key(head)

    def guards(self, path: str) -> bool:
        """Returns whether a path outside the inspector needs the admin key."""
        return bool(self._digest) and path in OPERATOR_PATHS

    def check_key(self, head: Head) -> None:
        """Raises InvalidRequest, a 401, for a request without the admin key."""
        scheme, _, key = head.get(b"authorization", b"").partition(b" ")
        given = hashlib.sha256(key.strip() if scheme.lower() == b"bearer" else b"").digest()
        if not hmac.compare_digest(given, self._digest):
            raise InvalidRequest(
                "The admin key is required: send it as 'Authorization: Bearer KEY'. A client's key does not do.",
                status=401,
                code="invalid_admin_key",
                headers={"www-authenticate": "Bearer"},
            )


def _is_forwarded(head: Head) -> bool:
    """Returns whether a proxy passes the request on: it looks local, whoever has sent it."""
    return any(name in head for name in _FORWARDED)


def _is_local(settings: Settings, keys: bool) -> bool:
    # Behind a proxy, which allowed_hosts and keys are signs of, everybody may look local.
    return is_loopback(settings.server.host) and not settings.server.allowed_hosts and not keys
