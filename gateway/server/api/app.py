"""Makes the gateway an ASGI application. What answers at the routes without a model is loaded with the first request
for one of them: FastAPI and what it needs would take half of the start and a fifth of the memory at rest."""

import asyncio
import traceback
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.errors import SettingsError
from gateway.dialects.route_table import RouteTable
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.middleware import GatewayMiddleware
from gateway.server.api.own_routes import OWN_ROUTES
from gateway.server.inspect.access import is_inspected
from gateway.server.state.state_folder import StateKeys
from gateway.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


class Gateway:
    """The application. The constructor builds its gateway state, so that wrong settings raise SettingsError here."""

    def __init__(self, settings: Settings, state_keys: StateKeys | None = None) -> None:
        self.gateway_state = GatewayState(settings, state_keys=state_keys)
        _check_paths(self.gateway_state.dialects)
        self.asgi = GatewayMiddleware(self._serve, self.gateway_state)
        self._loading = asyncio.Lock()
        self._routes: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the middleware, which calls what answers at the other routes."""
        await self.asgi(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run(receive, send)
            return
        async with self._loading:
            if self._routes is None:
                # In a thread: streams are being served meanwhile.
                self._routes = await asyncio.to_thread(self.load_routes)
        await self._routes(scope, receive, send)

    def load_routes(self) -> "FastAPI":
        """Returns the application of the routes at which no model answers."""
        from gateway.server.api.routes import create_routes

        return create_routes(self.gateway_state, self)

    async def _run(self, receive: Receive, send: Send) -> None:
        """Runs from one event of the ASGI lifespan to the other. The server logs the traceback that it is told."""
        await receive()
        failed = "lifespan.startup.failed"
        try:
            async with self.gateway_state.running():
                await send({"type": "lifespan.startup.complete"})
                failed = "lifespan.shutdown.failed"
                await receive()
        except BaseException:  # whatever ends the gateway, also a cancellation: the server is told, and it is raised
            await send({"type": failed, "message": traceback.format_exc()})
            raise
        await send({"type": "lifespan.shutdown.complete"})


def create_app(settings: Settings, state_keys: StateKeys | None = None) -> Gateway:
    """Returns the gateway as an ASGI application, with keys that were opened for all workers. Raises SettingsError."""
    return Gateway(settings, state_keys)


def _check_paths(dialects: RouteTable) -> None:
    """Raises SettingsError for a dialect with a route that the gateway has itself."""
    for dialect in dialects.dialects:
        for route in dialect.routes:
            if (route.method, route.path) in OWN_ROUTES or is_inspected(route.path):
                raise SettingsError(
                    f"the dialect {dialect.name!r} serves {route.method} {route.path}, which is a path of the gateway"
                )
