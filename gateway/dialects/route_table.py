"""Finds the dialect of a request by its method and path."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway.core.errors import SettingsError
from gateway.dialects.base import Dialect, RouteKind

_PARAMETER: Final = re.compile(r"\{\w+\}")


class Served(NamedTuple):
    """The dialect that answers a request, and what it serves there; None: no dialect serves this method and path."""

    dialect: Dialect
    kind: RouteKind | None


class RouteTable:
    """The routes of some dialects, the first of which answers where no route tells the client's dialect.

    Raises SettingsError for two dialects with the same route.
    """

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self.dialects = tuple(dialects)
        self.default = self.dialects[0]
        self._unknown = Served(self.default, None)
        self._exact: dict[tuple[str, str], Served] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Served]] = []
        self._paths: dict[str, Served] = {}
        owners: dict[tuple[str, str], Dialect] = {}
        for dialect in self.dialects:
            for route in dialect.routes:
                owner = owners.setdefault((route.method, _PARAMETER.sub("{}", route.path)), dialect)
                if owner is not dialect:
                    raise SettingsError(
                        f"the dialects {owner.name!r} and {dialect.name!r} both serve {route.method} {route.path}; "
                        "uninstall the package of one of them"
                    )
                served = Served(dialect, route.kind)
                if _PARAMETER.search(route.path):
                    self._patterns.append((route.method, _pattern(route.path), served))
                else:
                    self._exact[route.method, route.path] = served
                    self._paths[route.path] = Served(dialect, None)

    def find(self, method: str, path: str) -> Served:
        """Returns the dialect that answers a request, and what it serves there."""
        served = self._exact.get((method, path))
        if served is not None:
            return served
        for pattern_method, pattern, found in self._patterns:
            if pattern_method == method and pattern.fullmatch(path):
                return found
        return self._paths.get(path, self._unknown)


def _pattern(path: str) -> re.Pattern[str]:
    before, after = _PARAMETER.split(path)
    return re.compile(f"{re.escape(before)}.+{re.escape(after)}", re.DOTALL)
