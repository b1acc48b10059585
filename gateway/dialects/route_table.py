"""Finds the dialect of a request by its method and path and, where two dialects serve both, by a mark of its head."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway.core.errors import SettingsError
from gateway.dialect import CompactingDialect, CountingDialect, Dialect, RequestHead, Route, RouteKind
from gateway.dialects.stateful import StatefulDialect
from gateway.dialects.websocket import WebSocketDialect

_PARAMETER: Final = re.compile(r"\{\w+\}")


class Served:
    """The dialect that answers a request, and its route; None: no dialect serves this method and path.

    `marked` are the other dialects of the same method and path, each of which answers the requests with its mark.
    """

    __slots__ = ("dialect", "kind", "marked", "path", "route")

    def __init__(self, dialect: Dialect, route: Route | None = None) -> None:
        self.dialect = dialect
        self.route = route
        self.kind: RouteKind | None = None if route is None else route.kind
        self.path = "" if route is None else route.path
        self.marked: list[Served] = []

    def select(self, head: RequestHead) -> "Served":
        """Returns the one that answers a request with this head."""
        for served in self.marked:
            if served.route is not None and served.route.mark is not None and served.route.mark.is_on(head):
                return served
        return self


class DialectExtensions(NamedTuple):
    """A dialect by what it does beside the contract of all: counts tokens, stores answers, has compactions, is spoken
    over WebSockets. None: it does not."""

    counting: CountingDialect | None
    stored: StatefulDialect | None
    compacting: CompactingDialect | None
    websocket: WebSocketDialect | None = None


class RouteTable:
    """The routes of some dialects, the first of which answers where no route determines the client's dialect.
    `extensions` are those of the dialects, by their names; at the paths of `websockets` a GET may open a WebSocket.

    Raises SettingsError for two dialects with the same route and no mark that tells them apart, and for a dialect with
    a route of a kind that it does not answer.
    """

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self.dialects = tuple(dialects)
        self.default = self.dialects[0]
        self.extensions = {dialect.name: _extensions(dialect) for dialect in self.dialects}
        routes = [route for dialect in self.dialects for route in dialect.routes]
        self.websockets = frozenset([route.path for route in routes if route.websocket])
        # The dialect of a path that no route has: the first one with a route below the same folder.
        self._folders: dict[str, Served] = {}
        for dialect in self.dialects:
            for folder in [folder for route in dialect.routes for folder in _folders(route.path)]:
                self._folders.setdefault(folder, Served(dialect))
        self._unknown = Served(self.default)
        # By path, then by method.
        self._exact: dict[str, dict[str, Served]] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Served]] = []
        # The dialect of a path, where the method is none of its own.
        self._paths: dict[str, Served] = {}
        for served in _served(self.dialects).values():
            assert served.route is not None  # only the unknown has none
            method, path = served.route.method, served.route.path
            if _PARAMETER.search(path):
                self._patterns.append((method, _pattern(path), served))
            else:
                self._exact.setdefault(path, {})[method] = served
                self._paths.setdefault(path, Served(served.dialect))

    def find(self, method: str, path: str) -> Served:
        """Returns the dialect that answers a request, and its route. Where it has `marked` ones, the head selects."""
        methods = self._exact.get(path)
        if methods is not None and method in methods:
            return methods[method]
        for pattern_method, pattern, found in self._patterns:
            if pattern_method == method and pattern.fullmatch(path):
                return found
        if (refusing := self._paths.get(path)) is not None:
            return refusing
        owners = (Served(found.dialect) for _, pattern, found in self._patterns if pattern.fullmatch(path))
        beside = (self._folders[folder] for folder in _folders(path) if folder in self._folders)
        return next(owners, None) or next(beside, self._unknown)


def _folders(path: str) -> tuple[str, str]:
    """Returns the first two names of a path, and the first alone."""
    names = path.split("/", 3)[:3]
    return "/".join(names), "/".join(names[:2])


def _extensions(dialect: Dialect) -> DialectExtensions:
    """Raises SettingsError for a route without the methods that answer it."""
    found = DialectExtensions(
        dialect if isinstance(dialect, CountingDialect) else None,
        dialect if isinstance(dialect, StatefulDialect) else None,
        dialect if isinstance(dialect, CompactingDialect) else None,
        dialect if isinstance(dialect, WebSocketDialect) else None,
    )
    kinds = {route.kind for route in dialect.routes}
    if "count" in kinds and found.counting is None:
        raise SettingsError(f"the dialect {dialect.name!r} has a route of the kind count, and no encode_count")
    if "stored" in kinds and found.stored is None:
        raise SettingsError(
            f"the dialect {dialect.name!r} has a route of the kind stored, and no missing_entries or no stored_query"
        )
    if any(route.websocket for route in dialect.routes) and found.websocket is None:
        raise SettingsError(f"the dialect {dialect.name!r} has a route with a WebSocket, and no read_event")
    return found


def _served(dialects: Sequence[Dialect]) -> dict[tuple[str, str], Served]:
    """Returns the dialect and the route of each method and path. A route without a mark stands before those with
    one."""
    found: dict[tuple[str, str], Served] = {}
    routes = [(dialect, route) for dialect in dialects for route in dialect.routes]
    for dialect, route in sorted(routes, key=lambda owned: owned[1].mark is not None):
        place = route.method, _PARAMETER.sub("{}", route.path)
        served = Served(dialect, route)
        first = found.setdefault(place, served)
        if first is served:
            continue
        if route.mark is not None and first.dialect is not dialect:
            first.marked.append(served)
        elif first.dialect is not dialect:
            raise SettingsError(
                f"the dialects {first.dialect.name!r} and {dialect.name!r} both serve {route.method} {route.path}; "
                "uninstall the package of one of them"
            )
    return found


def _pattern(path: str) -> re.Pattern[str]:
    before, after = _PARAMETER.split(path)
    return re.compile(f"{re.escape(before)}.+{re.escape(after)}", re.DOTALL)
