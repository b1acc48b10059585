"""Makes the gateway an ASGI application for any server: `uvicorn gateway.asgi:app`.

`dragoman serve` promises more; docs/deployment.md says what this way leaves to the server.
"""

import os
from functools import partial
from pathlib import Path
from typing import Final

from starlette.types import Receive, Scope, Send

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.server.access.request_checks import is_loopback
from gateway.server.api.app import Gateway, create_app
from gateway.server.api.client_response import ClientResponse
from gateway.server.http.asgi_writer import through_asgi
from gateway.server.http.websocket_writer import websocket_through_asgi
from gateway.server.log.logger import LOGGER, logging_to
from gateway.server.log.request_id import request_id
from gateway.settings import ServerSettings, load_settings, with_place
from gateway.settings.source import SettingsSource

# What only `dragoman serve` applies. The host still decides which names the gateway answers to.
UNUSED: Final = (
    *("port", "workers", "reload", "max_connections"),
    *("header_timeout_s", "write_timeout_s", "graceful_shutdown_timeout_s"),
)


class Application:
    """Reads the settings when the server starts; wrong ones are reported to the server, which then stops."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gateway: Gateway | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run(scope, receive, send)
        elif scope["type"] == "http":
            await through_asgi(self._serve)(scope, receive, send)
        elif scope["type"] == "websocket":
            await websocket_through_asgi(self._serve_websocket)(scope, receive, send)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            gateway = create_app(load_settings(self._path))
            gateway.gateway_state.check_exposure(insecure=False)
            with logging_to(gateway.gateway_state.settings.log, str):
                gateway.gateway_state.state_keys.open()
            gateway.gateway_state.source = SettingsSource(self._path, partial(load_settings, self._path))
        except SettingsError as error:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": with_place(self._path, error.message)})
            return
        state = gateway.gateway_state
        with logging_to(state.settings.log, state.redact) as log:
            state.metrics.log_drops.set_function(lambda: log.dropped)
            if unused := changed_unused(state.settings.server):
                LOGGER.warning("these settings have no effect on this server: %s", ", ".join(unused))
            state.share_limits()
            self._gateway = gateway
            await gateway.asgi(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._gateway is not None, "a server without lifespan events cannot run the gateway"
        state = self._gateway.gateway_state
        if not state.keys and not is_local(scope):
            refusal = InvalidRequest(
                "This gateway has no client keys, so it serves only its own machine.", status=403, code="local_only"
            )
            dialect = state.dialects.find(scope["method"], scope["path"]).dialect
            await ClientResponse(scope["state"]["response_writer"], dialect, request_id(None)).fail(refusal)
            return
        await self._gateway.asgi(scope, receive, send)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._gateway is not None, "a server without lifespan events cannot run the gateway"
        if self._gateway.gateway_state.keys or is_local(scope):
            await self._gateway.asgi(scope, receive, send)
        else:
            # The server answers with status 403.
            await receive()
            await send({"type": "websocket.close", "code": 1008})


def is_local(scope: Scope) -> bool:
    """Returns whether the request came to an address that is reachable from this machine only: a loopback address, or
    the path of a socket file."""
    server = scope.get("server")
    return server is not None and (server[1] is None or is_loopback(server[0]))


def changed_unused(server: ServerSettings) -> list[str]:
    """Returns the names of the settings that are set and that only `dragoman serve` applies."""
    usual = ServerSettings()
    return [f"server.{name}" for name in UNUSED if getattr(server, name) != getattr(usual, name)]


app: Final = Application(Path(os.environ.get("DRAGOMAN_SETTINGS") or "settings.json"))
