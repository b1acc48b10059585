"""Adds the routes of the dialects to the application: lists of models, and what the document shows of the hot ones."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as AppRoute

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.dialects.base import Dialect, ModelNames, Route, RouteKind
from gateway.dialects.openapi import JSON
from gateway.dialects.route_table import RouteTable
from gateway.server.api.gateway_state import GatewayState

Handler: TypeAlias = Callable[..., Awaitable[Response]]


def add_dialect_routes(app: FastAPI, gateway_state: GatewayState) -> None:
    """Adds the routes of all dialects. Raises SettingsError for one that the gateway has itself."""
    own = {
        (method, route.path) for route in app.routes if isinstance(route, AppRoute) for method in route.methods or ()
    }
    for dialect in gateway_state.dialects.dialects:
        handlers = _handlers(dialect, gateway_state)
        for route in dialect.routes:
            if (route.method, route.path) in own:
                raise SettingsError(
                    f"the dialect {dialect.name!r} serves {route.method} {route.path}, which is a path of the gateway"
                )
            _add(app, route, handlers[route.kind])


def named_dialect(dialects: RouteTable, name: str | None) -> Dialect:
    """Returns the dialect of this name; None: the default one. Raises InvalidRequest for an unknown name."""
    if name is None:
        return dialects.default
    for dialect in dialects.dialects:
        if dialect.name == name:
            return dialect
    known = ", ".join(dialect.name for dialect in dialects.dialects)
    raise InvalidRequest(f"Unknown dialect {name[:200]!r}. Known dialects: {known}.", param="dialect")


def _handlers(dialect: Dialect, gateway_state: GatewayState) -> Mapping[RouteKind, Handler]:
    async def generate() -> Response:
        # The middleware serves it; the application shows it, and refuses other methods of its path.
        raise AssertionError("served by the middleware")

    async def list_models(request: Request) -> Response:
        allowed = partial(gateway_state.admission.allows, request.scope["context"].key)
        found = await gateway_state.model_lists.names(gateway_state.backends)
        names = tuple(filter(allowed, found.names))
        body = dialect.encode_models(ModelNames(names, gateway_state.created, found.missing))
        return Response(body, media_type=JSON)

    async def get_model(request: Request) -> Response:
        (name,) = request.path_params.values()
        gateway_state.backends.route(name)
        return Response(dialect.encode_model(name, gateway_state.created), media_type=JSON)

    return {"generate": generate, "models": list_models, "model": get_model}


def _add(app: FastAPI, route: Route, handler: Handler) -> None:
    shown = route.operation
    app.add_api_route(
        # A parameter ends at a slash unless it is declared as a path.
        route.path.replace("}", ":path}"),
        handler,
        methods=[route.method],
        include_in_schema=shown is not None,
        name=None if shown is None else shown.name,
        description=None if shown is None else shown.description,
        tags=None if shown is None else [shown.tag],
    )
