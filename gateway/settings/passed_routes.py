"""Checks the routes that are passed to backends as they are."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.settings.check import fault, nearest, path_of
from gateway.settings.values import BackendSettings

# Nothing in a path is encoded, and no part of it leads elsewhere.
_SEGMENTS: Final = r"(?:/(?!\.\.?(?:[/?]|$))[A-Za-z0-9._~:-]+)+"
_ROUTE: Final = re.compile(f"(?:GET|POST|PUT|PATCH|DELETE) {_SEGMENTS}")
# `/..` at the beginning leads to the folder above `base_url`.
_PATH: Final = re.compile(rf"(?:/\.\.)*{_SEGMENTS}(?:\?[A-Za-z0-9._~=&-]+)?")


def check_passed_routes(backends: Mapping[str, BackendSettings]) -> None:
    """Raises SettingsError for a route or a path that is none, and for a route without a model that its entry does not
    list, or that two entries want."""
    owners: dict[str, str] = {}
    for name, entry in backends.items():
        _check_paths(f"backends.{name}.routes", entry.routes)
        place = f"backends.{name}.routes_without_model"
        for route in entry.routes_without_model:
            if route not in entry.routes:
                raise fault(
                    place, f"{place}: {route!r} is not among backends.{name}.routes{nearest(route, entry.routes)}"
                )
            if owners.setdefault(route, name) != name:
                raise fault(place, f"{place}: {route!r} is also in backends.{owners[route]}.routes_without_model")


def routes_without_model(backends: Mapping[str, BackendSettings]) -> Mapping[str, str]:
    """Returns the name of the backend of each route whose request names no model."""
    return {route: name for name, entry in backends.items() for route in entry.routes_without_model}


def _check_paths(where: str, routes: Mapping[str, str]) -> None:
    for route, path in routes.items():
        place = path_of(where, route)
        if not _ROUTE.fullmatch(route):
            raise fault(place, f"{place}: a route is a method and a path, such as 'POST /v1/embeddings'")
        if not _PATH.fullmatch(path):
            raise fault(place, f"{place} must be a path below base_url, such as '/embeddings'")
