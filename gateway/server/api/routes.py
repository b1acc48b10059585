"""Builds the FastAPI application behind the middleware: every route at which no model answers.

It is loaded with the first request for one of them."""

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse
from sse_starlette.sse import AppStatus
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from gateway.core.errors import GatewayError, InvalidRequest
from gateway.diagnostics.explain_request import explain_routed
from gateway.diagnostics.routed_request import route_document
from gateway.dialects.document import read_document
from gateway.dialects.route_table import RouteTable
from gateway.server.access.request_checks import is_loopback
from gateway.server.api.dialect_routes import add_dialect_routes, advice, named_dialect, read_client_body
from gateway.server.api.docs_html import PAGE_HEADERS, docs_page
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.routes import add_inspect_routes
from gateway.server.api.openapi import describe_routes
from gateway.server.api.start_page import StartPageRoute
from gateway.server.api.state_explanation import remembered
from gateway.server.state.answer_store import with_stored
from gateway.server.telemetry.metric_types import Snapshot
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.demo_backends import DEMO_REQUESTS
from gateway.server.upstream.transport import gateway_version


def create_routes(gateway_state: GatewayState, gateway: ASGIApp) -> FastAPI:
    """Returns the application of these routes. `gateway` is the whole one, which the inspector sends requests to."""
    app = FastAPI(
        title="Dragoman",
        version=gateway_version(),
        description="A provider translation gateway: clients of any LLM API in front, any backend behind.",
        redirect_slashes=False,
        # FastAPI's telemetry would export the texts of exceptions; ours is in gateway/server/telemetry/tracing.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
    )
    # Our own drain ends the event stream; theirs, if it came first, would cut the stream within its framing.
    AppStatus.enable_automatic_graceful_drain = False

    @app.get("/healthz", tags=["health"])
    async def healthz() -> Response:
        """The process is alive."""
        raise _served_before()

    @app.get("/readyz", tags=["health"])
    async def readyz() -> Response:
        """Whether the gateway accepts new requests: 200, or 503 while starting and stopping."""
        raise _served_before()

    @app.get("/v1/events", tags=["events"])
    async def events() -> Response:
        """A live stream of notices and outcomes (server-sent events; names and counts, no contents)."""
        return EventSourceResponse(gateway_state.event_bus.watch(), ping=15)

    @app.post("/v1/explain", tags=["explain"])
    async def explain(request: Request) -> Response:
        """The request that the gateway would send for a client's request, and why. Nothing is sent."""
        body = await read_client_body(request, gateway_state.max_body)
        check_model = partial(gateway_state.admission.check_model, request.scope["context"].key)
        dialect = named_dialect(gateway_state.dialects, request.query_params.get("dialect"))
        # In a thread: a long history takes a while to explain, and streams are being served meanwhile.
        document = await asyncio.to_thread(read_document, body)
        stateful = gateway_state.dialects.extensions[dialect.name].stored
        if stateful is not None:
            answers = gateway_state.answers.of(request.scope["context"])
            document = await with_stored(stateful, document, answers)
        routed = await asyncio.to_thread(
            route_document, document, gateway_state.settings, gateway_state.backends.adapters, dialect, check_model
        )
        found = await remembered(gateway_state, request.scope["context"], routed)
        explanation = await asyncio.to_thread(
            explain_routed, found.routed, dialect, found.notices, found.summary, found.state
        )
        return _json(msgspec.json.encode(explanation))

    @app.get("/metrics", tags=["health"])
    async def metrics(request: Request) -> Response:
        """Counters and measurements as Prometheus text or, where the Accept header asks for it, as OpenMetrics."""
        accept, snapshot = request.headers.get("accept", ""), gateway_state.snapshot()
        body, media_type = await asyncio.to_thread(_exposed, gateway_state.metrics, snapshot, accept)
        return Response(body, headers={"content-type": media_type})

    @app.get(DEMO_REQUESTS, include_in_schema=False)
    async def demo_requests() -> Response:
        """The requests that the demo backends have received, of all clients: for clients on this machine only, and only
        while such backends run."""
        shown = gateway_state.demo_backends.show()
        if not shown or not is_loopback(gateway_state.settings.server.host):
            raise HTTPException(404)
        return JSONResponse(shown)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        """The routes as an HTML page."""
        return Response(docs_page(app.openapi()), media_type="text/html", headers=PAGE_HEADERS)

    add_inspect_routes(app, gateway_state, gateway)
    # Before the dialects, one of which answers a probe at the same path.
    app.router.routes.append(StartPageRoute(gateway_state))
    add_dialect_routes(app, gateway_state)
    describe_routes(app, gateway_state.dialects)
    app.add_exception_handler(HTTPException, partial(_http_error, gateway_state.dialects))
    app.add_exception_handler(GatewayError, _gateway_error)
    # Starlette responds to a bug with text and then raises the exception again, and the middleware logs it.
    app.add_exception_handler(Exception, _bug)
    return app


def _served_before() -> AssertionError:
    """Returns the error of a route that the application shows, and whose other methods it refuses."""
    return AssertionError("the middleware serves this route")


async def _http_error(table: RouteTable, request: Request, error: Exception) -> Response:
    """Reports an unknown path or method."""
    assert isinstance(error, HTTPException)
    unknown = error.status_code == 404
    path = request.scope["path"]
    hint = advice(path, table.dialects) if unknown else "GET /docs lists them."
    refusal = InvalidRequest(
        f"Unknown route {request.method} {path:.240}. {hint}",
        status=error.status_code,
        code="unknown_url" if unknown else "method_not_allowed",
        headers=error.headers if unknown else {"allow": ", ".join(_methods(request))},
    )
    return await _gateway_error(request, refusal)


def _methods(request: Request) -> Sequence[str]:
    """Returns the methods of a path, each of which may be a route of its own (RFC 9110, 10.2.1)."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    # The first one that fits: a later one may have a parameter where this one has a word.
    path = next(route.path for route in routes if route.matches(request.scope)[0] is Match.PARTIAL)
    found = [route for route in routes if route.path == path]
    # A route that the document does not show beside others only refuses.
    shown = [route for route in found if route.include_in_schema] or found
    return sorted({method for route in shown for method in route.methods or ()})


async def _gateway_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    request.scope["context"].code = error.code
    return _error(request, error)


async def _bug(request: Request, error: Exception) -> Response:
    return _error(request, GatewayError("Internal error of the gateway. Its log states the cause."))


def _error(request: Request, error: GatewayError) -> Response:
    answer = request.scope["served"].dialect.encode_error(error, request.scope["context"].id)
    return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)


def _exposed(metrics: Metrics, snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    # Imported at the first scrape, in its thread: it takes 23 ms and 1.2 MB, and many gateways are never asked.
    from gateway.server.telemetry.exposition import expose

    return expose(metrics, snapshot, accept)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
