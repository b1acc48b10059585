"""Adds the routes of the dialects to the application: models, counts and fixed answers, and the entries of the hot ones
in the document. A client whose path has no route gets advice.
"""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from fastapi import FastAPI
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.capabilities.held_tools import with_offered
from gateway.core.backend_status import redact_error
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_view
from gateway.dialect import (
    ClientRequest,
    CountingDialect,
    Dialect,
    FixedAnswer,
    ListedModels,
    ModelInfo,
    Route,
    RouteKind,
)
from gateway.dialects.document import read_document
from gateway.dialects.field_types import missing_field
from gateway.dialects.openapi import JSON
from gateway.dialects.route_table import RouteTable, Served
from gateway.server.access.request_checks import check_media_type
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.model_catalogue import describe_model
from gateway.server.http.read_body import BODY_S, read_body
from gateway.server.state.answer_store import with_stored
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.completion import RoutedModel
from gateway.server.upstream.deadlines import body_timeout
from gateway.server.upstream.fd_limits import check_lack

# Clients of these APIs add the version, or the folder, to their base URL themselves.
_DOUBLED: Final = ("/v1/v1/", "/v1/v1beta/", "/v1/api/")
# Routes of these APIs that a gateway for conversations does not have, by a part of the path.
_ABSENT: Final[Mapping[str, str]] = {
    "assistants": "assistants",
    "audio": "audio",
    "embeddings": "embeddings",
    "evals": "evaluations",
    "fine_tuning": "fine-tuning",
    "images": "images",
    "moderations": "moderations",
    "realtime": "realtime sessions",
    "rerank": "reranking",
    "threads": "threads",
    "vector_stores": "vector stores",
    "videos": "videos",
}
_LONGEST: Final = 80
_SIMILAR: Final = 0.75

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
ESTIMATED: Final = {"x-dragoman-usage": "estimated"}


def advice(path: str, dialects: Iterable[Dialect]) -> str:
    """Returns sentences about a path that no route has."""
    if path.startswith(_DOUBLED):
        return "Remove /v1 from the base URL of the client."
    routes = [route for dialect in dialects for route in dialect.routes if route.kind != "refused"]
    meant = difflib.get_close_matches(path[:_LONGEST], {route.path for route in routes}, 1, _SIMILAR)
    if meant:
        return f"Did you mean {meant[0]}? GET /docs lists the routes."
    absent = next((_ABSENT[part] for part in path.split("/") if part in _ABSENT), None)
    lacking = (
        f"The gateway itself has no {absent}, but passes them to a backend whose settings list this route "
        "(backends.NAME.routes). "
        if absent
        else ""
    )
    served = dict.fromkeys(route.path for route in routes if route.kind == "generate" and route.operation)
    return f"{lacking}It serves {', '.join(served)}. GET /docs lists all routes."


def add_dialect_routes(app: FastAPI, gateway_state: GatewayState) -> None:
    """Adds the routes of all dialects."""
    handlers = _handlers(gateway_state)
    for dialect in gateway_state.dialects.dialects:
        for route in dialect.routes:
            if route.mark is None:
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


async def read_client_body(request: Request, max_body: int) -> bytes:
    """Returns the body of a request for JSON. Raises InvalidRequest, also where the client takes too long."""
    headers = dict(request.scope["headers"])
    check_media_type(headers)
    try:
        async with asyncio.timeout(BODY_S):
            return await read_body(request.scope["request_body"], headers, max_body)
    except TimeoutError:
        raise body_timeout() from None


def _handlers(gateway_state: GatewayState) -> Mapping[RouteKind, Handler]:
    """Returns the handlers by the kind of their routes. The middleware has determined the dialect and the route."""

    async def generate(request: Request) -> Response:
        # The middleware serves it; the application shows it, and refuses other methods of its path.
        raise AssertionError(f"{_served(request).dialect.name} is served by the middleware")

    async def list_models(request: Request) -> Response:
        allowed = partial(gateway_state.admission.allows, request.scope["context"].key)
        found = await gateway_state.model_lists.names(gateway_state.backends)
        served = _served(request)
        models = await _models(gateway_state, served, list(filter(allowed, found.names)))
        listed = ListedModels(models, found.missing, gateway_state.settings.server.claude_ids)
        body = served.dialect.encode_models(listed)
        return Response(body, media_type=JSON)

    async def get_model(request: Request) -> Response:
        served = _served(request)
        assert served.route is not None  # the kind is that of the route
        fields = served.route.name_fields
        if fields:
            name = _name_in(await read_client_body(request, gateway_state.max_body), fields)
        else:
            (name,) = request.path_params.values()
        name = gateway_state.backends.listed_name(name)
        gateway_state.backends.route(name)
        gateway_state.admission.check_model(request.scope["context"].key, name)
        if served.route.fixed is not None:
            return _fixed(served.route.fixed)
        (model,) = await _models(gateway_state, served, [name])
        return Response(served.dialect.encode_model(model), media_type=JSON)

    async def count_tokens(request: Request) -> Response:
        body = await read_client_body(request, gateway_state.max_body)
        dialect, stateful, _, _ = gateway_state.dialects.extensions[_served(request).dialect.name]
        assert dialect is not None  # the kind is that of the route
        # In a thread: clients send their whole history, and streams are being served meanwhile.
        document = await asyncio.to_thread(read_document, body)
        if stateful is not None:
            answers = gateway_state.answers.of(request.scope["context"])
            document = await with_stored(stateful, document, answers)
        asked = await asyncio.to_thread(dialect.decode, document, request.scope["head"])
        return await _count_answer(gateway_state, request.scope["context"], dialect, asked)

    async def answer_stored(request: Request) -> Response:
        served = _served(request)
        stateful = gateway_state.dialects.extensions[served.dialect.name].stored
        assert served.route is not None and stateful is not None  # the kind is that of the route
        (name,) = request.path_params.values()
        query = stateful.stored_query(served.route, request.scope["head"], name)
        answers = gateway_state.answers.of(request.scope["context"])
        found = {} if answers is None else await answers.find(query.missing)
        # In a thread: what is stored may be a long history.
        body = await asyncio.to_thread(query.encode, found)
        if answers is not None and (names := query.deletes(found)):
            await answers.delete(names)
        return Response(body, media_type=JSON)

    async def answer_fixed(request: Request) -> Response:
        route = _served(request).route
        assert route is not None and route.fixed is not None, "a fixed route has its answer"
        return _fixed(route.fixed)

    async def refuse(request: Request) -> Response:
        route = _served(request).route
        assert route is not None and route.refusal is not None, "a refused route has its error"
        refusal = route.refusal
        raise InvalidRequest(refusal.message, status=refusal.status, code=refusal.code, headers=refusal.headers)

    return {
        "generate": generate,
        "models": list_models,
        "model": get_model,
        "count": count_tokens,
        "stored": answer_stored,
        "fixed": answer_fixed,
        "refused": refuse,
    }


def _served(request: Request) -> Served:
    """Raises HTTPException where no route of a dialect fits: an empty parameter fits that of the application alone."""
    served = cast(Served, request.scope["served"])
    if served.route is None:
        raise HTTPException(404)
    return served


async def _models(gateway_state: GatewayState, served: Served, names: Sequence[str]) -> list[ModelInfo]:
    backends, created = gateway_state.backends, gateway_state.created
    asked = names if served.route is not None and served.route.facts else ()
    listed = await gateway_state.model_lists.entries(backends, asked)
    routes = [(name, backends.find(name)) for name in names]
    return [
        ModelInfo(name, created) if route is None else describe_model(name, created, *route, listed.get(name))
        for name, route in routes
    ]


def _fixed(answer: FixedAnswer) -> Response:
    return Response(answer.body, media_type=answer.media_type)


def _name_in(body: bytes, fields: tuple[str, ...]) -> str:
    document = read_document(body).fields
    for field in fields:
        name = document.get(field)
        if isinstance(name, str) and name:
            return name
    raise missing_field(fields[0])


async def _count_answer(
    state: GatewayState, context: RequestContext, dialect: CountingDialect, request: ClientRequest
) -> Response:
    asked = request.conversation
    if request.compacted:
        asked = (await state.opened(context.key, asked)).conversation
    routed = _routed(state, context, asked.model)
    if routed is not None:
        tokens = await _counted(state, context, asked, routed, compacts=request.compacts is not None)
        if tokens is not None:
            return Response(dialect.encode_count(tokens), media_type=JSON)
    estimate = await asyncio.to_thread(_estimated, asked, routed)
    return Response(dialect.encode_count(estimate), media_type=JSON, headers=ESTIMATED)


def _routed(state: GatewayState, context: RequestContext, name: str) -> RoutedModel | None:
    """Returns the model of this name; None where the client may not send a request for it."""
    try:
        model = state.backends.listed_name(name)
        route, backend = state.backends.route(model)
        state.admission.check_model(context.key, model)
    except GatewayError:
        return None
    return RoutedModel(model, route, backend)


def _estimated(asked: Conversation, routed: RoutedModel | None) -> int:
    """Returns the estimated tokens of a request, of the functions only those that its first round offers."""
    if routed is not None:
        asked = with_offered(asked, routed.route.policy, routed.backend.adapter.capabilities)
    return estimate_view(asked)


async def _counted(
    state: GatewayState,
    context: RequestContext,
    asked: Conversation,
    routed: RoutedModel,
    *,
    compacts: bool,
) -> int | None:
    """Returns the tokens of the request that the backend of the model would get, as its own counter says; None where
    it has none, or where that fails, which is reported. `compacts`: the request asks for a compaction."""
    route, backend = routed.route, routed.backend
    if compacts:
        # Loaded with the first compaction.
        from gateway.server.api.compacting import without_request

        asked = without_request(state, asked, route, backend)
    try:
        return await state.token_counter.count(backend, route, replace(asked, model=routed.sent_name))
    except BackendError as error:
        check_lack(error)
        redact_error(error, backend.redact)
        _note_estimate(context, "the backend did not count the tokens of the request", error)
    except GatewayError as error:
        _note_estimate(context, "no request to the backend can be made or sent", error)
    return None


def _note_estimate(context: RequestContext, why: str, error: GatewayError) -> None:
    detail = f"{why} ({error.code}), so that its tokens are estimated"
    context.note((*error.notices, Notice("backend", "added", "COUNT_ESTIMATED", detail, level="warning")))


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
