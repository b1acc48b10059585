"""The outermost ASGI layer: request ids, admission, the hot route, health, and the one place that turns failures into
responses."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.errors import BackendError, GatewayError, ServerShutdown
from gateway.dialect import RequestHead, RouteKind
from gateway.dialects.route_table import Served
from gateway.server.access.request_checks import ALIVE, OPEN_PATHS, check_single, check_site, is_start_page
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.endpoint import GenerateEndpoint
from gateway.server.api.gateway_state import GatewayState, shutdown
from gateway.server.http.response_writer import Writer
from gateway.server.inspect.access import is_inspected
from gateway.server.log.logger import LOGGER
from gateway.server.telemetry.request_context import CHAT, CLIENT_DISCONNECTED, PASSED, RequestContext
from gateway.server.upstream.deadlines import ClientDisconnected

if TYPE_CHECKING:
    from gateway.server.api.answer_steering import AnswerSteering
    from gateway.server.api.passed.routes import PassedRoute
    from gateway.server.state.connection_answers import ConnectionMemory

SHUTDOWN: Final = ServerShutdown.code
# How metrics name the routes; every other one is `other`.
OTHER: Final = "other"
LABELS: Final[Mapping[RouteKind | None, str]] = {"generate": CHAT, "models": "models", "count": "count"}


class OwnClient(Protocol):
    """The client of a request that the gateway makes itself. `memory`: of the connection for which it is made;
    `steering`: of the answer."""

    @property
    def memory(self) -> "ConnectionMemory | None": ...

    @property
    def steering(self) -> "AnswerSteering | None": ...

    def join(self, context: RequestContext) -> None:
        """Names the client of the request, whose key is not checked again."""
        ...


class GatewayMiddleware:
    """Wraps the application, and serves the hot routes of every dialect and the health routes itself. Every route but
    the health routes needs a key, whether the path exists or not; the start page checks it itself."""

    def __init__(self, app: ASGIApp, gateway_state: GatewayState) -> None:
        self._app = app
        self._state = gateway_state
        self._dialects = gateway_state.dialects
        self._generate = GenerateEndpoint(gateway_state)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        method, path, headers = scope["method"], scope["path"], dict(scope["headers"])
        head = RequestHead(path, scope["query_string"], headers)
        served = self._dialects.find(method, path)
        if served.marked:
            served = served.select(head)
        dialect = served.dialect
        passed = None if served.kind == "generate" else self._passed_route(scope)
        context = RequestContext(
            method,
            path,
            LABELS.get(served.kind, OTHER) if passed is None else PASSED,
            headers,
            self._state.observers,
            dialect.paths,
            dialect.name,
            served.path,
        )
        # Taken out, it does not refer to itself: nothing of a request has to wait for the collector.
        writer: Writer = scope["state"].pop("response_writer")
        for wrap in context.observers.writer:
            writer = wrap(context, dialect, head, writer)
        response = ClientResponse(writer, dialect, context.id)
        status = 0
        try:
            await self._serve(scope, receive, context, response, served, head, passed)
        except asyncio.CancelledError:
            # Only the end of the process cancels requests that are served here.
            if not context.failed:
                context.code = SHUTDOWN
            raise
        except ClientDisconnected:
            context.code = "client_gone"
            for disconnect in context.observers.disconnect:
                disconnect(context)
            status = CLIENT_DISCONNECTED
            # A graceful close would wait for a client that reads nothing.
            response.connection.cut()
        except GatewayError as error:
            report(context, error)
            _show(context, response, error)
            unread = passed is not None and response.request_body.more and not response.status
            # A backend sends this error only after the client's whole request has been read.
            if unread or (error.code == "request_too_large" and not isinstance(error, BackendError)):
                await response.refuse(error)
            else:
                await response.fail(error, context.answer_headers())
        except Exception:  # noqa: BLE001 (the boundary: a bug must not end the connection without a response)
            context.code = "internal_error"
            LOGGER.exception("internal_error in %s %s", context.method, context.path, extra={"request_id": context.id})
            failure = GatewayError(f"Internal error of the gateway. Its log states the cause under {context.id}.")
            _show(context, response, failure)
            await response.fail(failure)
        finally:
            context.conclude(status or response.status)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves what is no request: the life of the server, and WebSockets, whose events are requests."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            # Loaded with the first one.
            from gateway.server.api.websocket import serve_websocket

            await serve_websocket(self._state, self, scope, receive, send)

    async def _serve(
        self,
        scope: Scope,
        receive: Receive,
        context: RequestContext,
        response: ClientResponse,
        served: Served,
        head: RequestHead,
        passed: "PassedRoute | None",
    ) -> None:
        key_places = served.dialect.key_places
        # What the inspector and a WebSocket send has a client that is known, which no client can put here.
        own: OwnClient | None = scope["state"].get("client")
        if own is not None:
            own.join(context)
        if len(context.headers) != len(scope["headers"]):
            check_single(scope["headers"], [place.name for place in key_places if place.where == "header"])
        self._state.hosts.check(context.headers)
        check_site(context.headers)
        if served.kind is None and is_inspected(context.path):
            self._state.check_inspector(context.path, context.headers)
        elif served.kind is None and self._state.access.guards(context.path):
            self._state.access.check_key(context.headers)
        elif served.kind != "generate" and is_start_page(context.method, context.path, context.headers):
            pass  # its route checks the key, to refuse with a page
        elif own is None and context.path not in OPEN_PATHS:
            context.key = self._state.keys.check(head, key_places)
        if served.kind == "generate":
            context.head = head
            if not self._state.ready:
                raise shutdown()
            admission = self._state.admission
            with admission.admit(context.key):
                if admission.shared is not None:
                    await admission.shared.confirm(context.key)
                memory, steering = (None, None) if own is None else (own.memory, own.steering)
                await self._generate(context, response, served.dialect, head, memory, steering)
        elif passed is not None:
            context.head = head
            await self._pass_on(context, response, passed)
        elif context.path in OPEN_PATHS and context.method == "GET":
            await self._health(context.path, response)
        else:
            facts = {"context": context, "served": served, "head": head, "request_body": response.request_body}
            await self._app({**scope, **facts}, receive, response.forward)

    def _passed_route(self, scope: Scope) -> "PassedRoute | None":
        """Returns the route by which a request is passed on; None: it is not."""
        if self._state.passed is None:
            return None
        method, path = scope["method"], scope["path"]
        return self._state.passed.find(method, path, scope.get("raw_path") or path.encode())

    async def _pass_on(self, context: RequestContext, response: ClientResponse, route: "PassedRoute") -> None:
        """Serves a request as it is by a backend, within the limits of every request to a model."""
        # Loaded with the first one.
        from gateway.server.api.passed.endpoint import PassedEndpoint

        if not self._state.ready:
            raise shutdown()
        admission = self._state.admission
        with admission.admit(context.key):
            if admission.shared is not None:
                await admission.shared.confirm(context.key)
            await PassedEndpoint(self._state)(context, response, route)

    async def _health(self, path: str, response: ClientResponse) -> None:
        """Reports that the process is alive, or whether it accepts requests."""
        if path == ALIVE:
            await response.whole(200, b'{"status":"ok"}')
        elif self._state.ready:
            await response.whole(200, b'{"status":"ready"}')
        else:
            await response.whole(503, b'{"status":"draining"}')


def report(context: RequestContext, error: GatewayError) -> None:
    """Records the failure of a request, and lets the error say how it came about where the client asks for that."""
    context.fail(error)
    if context.explain:
        notices = (*context.notices, *error.notices)
        error.extra = {**error.extra, "diagnostics": msgspec.to_builtins(notices)}


def _show(context: RequestContext, response: ClientResponse, error: GatewayError) -> None:
    """Lets observers see what tells the client of an error."""
    for wrap in context.observers.error_writer:
        response.wrap(partial(wrap, context, error))
