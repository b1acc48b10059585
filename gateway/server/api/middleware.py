"""The outermost ASGI layer: request ids, admission, the hot route, and the one place that turns failures into
responses."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.conversation import Json
from gateway.core.errors import BackendError, GatewayError, ServerShutdown
from gateway.dialects.openai_chat.diagnostics import notice_object
from gateway.server.access.request_checks import OPEN_PATHS, check_single, check_site
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.endpoint import ChatEndpoint
from gateway.server.api.gateway_state import GatewayState, shutdown
from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.request_context import CHAT, CLIENT_DISCONNECTED, NO_ERROR, RequestContext
from gateway.server.upstream.deadlines import ClientDisconnected

SHUTDOWN: Final = ServerShutdown.code
HOT_PATHS: Final = frozenset({"/v1/chat/completions", "/chat/completions"})
# The other paths are the route `other`.
ROUTES: Final[Mapping[str, str]] = {**dict.fromkeys(HOT_PATHS, CHAT), "/v1/models": "models"}


class GatewayMiddleware:
    """Wraps the application. Every route but the health routes needs a key, whether the path exists or not."""

    def __init__(self, app: ASGIApp, gateway_state: GatewayState) -> None:
        self._app = app
        self._state = gateway_state
        self._chat = ChatEndpoint(gateway_state)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        path = scope["path"]
        route = ROUTES.get(path, "other")
        context = RequestContext(scope["method"], path, route, dict(scope["headers"]), self._state.observers)
        # Taken out, it does not refer to itself: nothing of a request has to wait for the collector.
        response = ClientResponse(scope["state"].pop("response_writer"), context.id)
        status = 0
        try:
            await self._serve(scope, receive, context, response)
        except asyncio.CancelledError:
            # Only the end of the process cancels requests that are served here.
            if not context.failed:
                context.code = SHUTDOWN
            raise
        except ClientDisconnected:
            context.code = "client_gone"
            status = CLIENT_DISCONNECTED
            # A graceful close would wait for a client that reads nothing.
            response.connection.cut()
        except GatewayError as error:
            _report(context, error)
            # A backend sends this error only after the client's whole request has been read.
            if error.code == "request_too_large" and not isinstance(error, BackendError):
                await response.refuse(error)
            else:
                await response.fail(error, context.answer_headers())
        except Exception:  # noqa: BLE001 (the boundary: a bug must not end the connection without a response)
            context.code = "internal_error"
            LOGGER.exception("internal_error in %s %s", context.method, context.path, extra={"request_id": context.id})
            await response.fail(GatewayError(f"The gateway failed; its log says why under {context.id}."))
        finally:
            context.conclude(status or response.status)

    async def _serve(self, scope: Scope, receive: Receive, context: RequestContext, response: ClientResponse) -> None:
        if len(context.headers) != len(scope["headers"]):
            check_single(scope["headers"])
        self._state.hosts.check(context.headers)
        check_site(context.headers)
        if context.path not in OPEN_PATHS:
            context.key = self._state.keys.check(context.headers)
        if context.path in HOT_PATHS and context.method == "POST":
            if not self._state.ready:
                raise shutdown()
            with self._state.admission.admit(context.key):
                await self._chat(context, response)
        else:
            await self._app(
                {**scope, "context": context, "request_body": response.request_body}, receive, response.forward
            )


def _report(context: RequestContext, error: GatewayError) -> None:
    """Records the failure of a request."""
    context.code = error.code or NO_ERROR
    context.note(error.notices)
    if context.explain:
        told: list[Json] = [notice_object(notice) for notice in (*context.notices, *error.notices)]
        error.extra = {**error.extra, "diagnostics": told}
    if isinstance(error, BackendError):
        context.fail(error)
