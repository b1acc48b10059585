"""Knows the routes that the settings pass to backends as they are."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from gateway.core.errors import SettingsError
from gateway.dialects.route_table import RouteTable
from gateway.server.api.own_routes import OWN_PATHS
from gateway.server.inspect.access import is_inspected
from gateway.settings import BackendSettings
from gateway.settings.passed_routes import routes_without_model

# A dialect's route of this kind says that nothing serves the path.
_REFUSED: Final = "refused"


class PassedRoute(msgspec.Struct, frozen=True):
    """A route by its name in the settings, and the names of the backends that list it, in their order; `default` is the
    one that gets a request without a model."""

    name: str
    backends: tuple[str, ...]
    default: str | None = None


class PassedRoutes:
    """All of them, by method and path."""

    def __init__(self, backends: Mapping[str, BackendSettings]) -> None:
        defaults = routes_without_model(backends)
        names = dict.fromkeys(route for entry in backends.values() for route in entry.routes)
        self._routes = {
            name: PassedRoute(
                name, tuple(owner for owner, entry in backends.items() if name in entry.routes), defaults.get(name)
            )
            for name in names
        }

    def find(self, method: str, path: str, raw_path: bytes) -> PassedRoute | None:
        """Returns the route with this method and path, which the client has sent as `raw_path`: with anything encoded
        in it, it is another one."""
        return self._routes.get(f"{method} {path}") if raw_path == path.encode() else None


def route_faults(backends: Mapping[str, BackendSettings], dialects: RouteTable) -> Iterator[SettingsError]:
    """Yields an error for each route that the gateway serves itself."""
    for name, entry in backends.items():
        for route in entry.routes:
            method, path = route.split(" ", 1)
            own = path in OWN_PATHS or is_inspected(path) or (method == "GET" and path in dialects.websockets)
            if own or dialects.find(method, path).kind not in (None, _REFUSED):
                yield SettingsError(f"backends.{name}.routes.{route}: the gateway serves this route itself")
