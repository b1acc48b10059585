"""Adds the routes below /inspect/api that show the settings: to the page, and to `dragoman config show --running`."""

import asyncio
from collections.abc import Callable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.effective_settings import settings_view
from gateway.server.api.inspect.responses import API, json_response, redacted_response
from gateway.server.api.inspect.running_settings import running_settings
from gateway.server.api.inspect.shown_settings import shown_settings
from gateway.server.inspect.inspector import Inspector


def add_settings_routes(app: FastAPI, gateway_state: GatewayState, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""

    @app.get(f"{API}/settings", include_in_schema=False)
    async def settings(request: Request) -> Response:
        """What the page has to know of the gateway."""
        return json_response(await shown_settings(gateway_state, inspector(), request.base_url))

    @app.get(f"{API}/running-settings", include_in_schema=False)
    async def running() -> Response:
        """The settings in use, without secrets."""
        return redacted_response(running_settings(gateway_state), gateway_state.redact)

    @app.get(f"{API}/effective-settings", include_in_schema=False)
    async def effective() -> Response:
        """The settings in use, without secrets, and what sets each."""
        return redacted_response(await asyncio.to_thread(settings_view, gateway_state), gateway_state.redact)
