"""Settings -> the FastAPI application: every cold route, with the front before them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse
from sse_starlette.sse import AppStatus
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.dialects.openai_chat.models import encode_model, encode_models
from gateway.errors import GatewayError, InvalidRequest
from gateway.explain import explain_request
from gateway.server.body import BODY_S, read_body
from gateway.server.docs_page import PAGE_HEADERS, docs_page
from gateway.server.documentation import describe, describe_chat
from gateway.server.door import check_media_type
from gateway.server.front import Front
from gateway.server.metrics_text import MEDIA_TYPE, metrics_text
from gateway.server.services import Services
from gateway.server.transport import gateway_version
from gateway.server.watch import body_late
from gateway.settings import Settings


class Gateway(FastAPI):
    """The application. Its services are built at once, so that wrong settings raise SettingsError here."""

    def __init__(self, settings: Settings) -> None:
        self.services = Services(settings)
        self.front = Front(super().__call__, self.services)
        super().__init__(
            title="Dragoman",
            version=gateway_version(),
            description="A provider translation gateway: OpenAI clients in front, any backend behind.",
            lifespan=_lifespan,
            redirect_slashes=False,
            # Its own telemetry would export the words of exceptions; ours is in gateway/server/tracing.
            telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
            docs_url=None,
            redoc_url=None,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The front comes first; behind it is everything that FastAPI brings."""
        await self.front(scope, receive, send)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    assert isinstance(app, Gateway)
    async with app.services.running():
        yield


def create_app(settings: Settings) -> Gateway:
    """The gateway as an ASGI application. Raises SettingsError."""
    app = Gateway(settings)
    services = app.services
    # Our own drain ends the feed; theirs, if it came first, would cut it off in the midst of its framing.
    AppStatus.enable_automatic_graceful_drain = False

    @app.get("/v1/models", tags=["models"])
    @app.get("/models", include_in_schema=False)
    async def list_models(request: Request) -> Response:
        """The models this gateway serves, or those of them that the key may use."""
        allowed = partial(services.admission.allows, request.scope["key"])
        return _json(encode_models(tuple(filter(allowed, services.backends.models)), services.created))

    @app.get("/v1/models/{name:path}", tags=["models"])
    @app.get("/models/{name:path}", include_in_schema=False)
    async def get_model(request: Request) -> Response:
        """One model."""
        name = request.path_params["name"]
        services.backends.route(name)
        return _json(encode_model(name, services.created))

    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["health"])
    async def readyz() -> Response:
        """Whether new requests are taken: 200, or 503 while starting and stopping."""
        return JSONResponse({"status": "ready" if services.ready else "draining"}, 200 if services.ready else 503)

    @app.get("/v1/events", tags=["events"])
    async def events() -> Response:
        """A live feed of notices and outcomes (server-sent events; names and counts, no contents)."""
        return EventSourceResponse(services.feed.watch(), ping=15)

    @app.post("/v1/explain", tags=["explain"])
    async def explain(request: Request) -> Response:
        """What would be sent for a chat request, and why. Nothing is sent."""
        head = dict(request.scope["headers"])
        check_media_type(head)
        try:
            async with asyncio.timeout(BODY_S):
                body = await read_body(request.scope["intake"], head, services.max_body)
        except TimeoutError:
            raise body_late() from None
        check_model = partial(services.admission.check_model, request.scope["key"])
        # In a thread: a long history takes a while to tell, and streams are being served meanwhile.
        told = await asyncio.to_thread(
            explain_request, body, services.settings, services.backends.adapters, check_model=check_model
        )
        return _json(msgspec.json.encode(told))

    @app.get("/metrics", tags=["health"])
    async def metrics() -> Response:
        """What happened, counted and measured, as Prometheus reads it."""
        return Response(metrics_text(services.snapshot()), media_type=MEDIA_TYPE)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        """The routes as a page for people."""
        return Response(docs_page(app.openapi()), media_type="text/html", headers=PAGE_HEADERS)

    describe_chat(app)
    describe(app)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(GatewayError, _gateway_error)
    # Starlette answers a bug with text; then raises it again, and the front logs it.
    app.add_exception_handler(Exception, _bug)
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    """An unknown path or method, as an OpenAI error object."""
    assert isinstance(error, HTTPException)
    unknown = error.status_code == 404
    body = InvalidRequest(
        f"There is no {request.method} {request.scope['path']:.240} here. GET /docs lists what there is.",
        status=error.status_code,
        code="unknown_url" if unknown else "method_not_allowed",
    ).body()
    return JSONResponse(body, error.status_code, dict(error.headers or {}))


async def _gateway_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    return JSONResponse(error.body(), error.status, dict(error.headers))


async def _bug(request: Request, error: Exception) -> Response:
    return JSONResponse(GatewayError("The gateway failed; its log says why.").body(), 500)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
