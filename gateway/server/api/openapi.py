"""Builds the published OpenAPI document from the routes and the project's own types.

FastAPI lists the routes; msgspec decodes and encodes their bodies, so the tables here and the operations of the
dialects declare what each route takes and returns.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec
from fastapi import FastAPI

from gateway.core.backend_status import FAULTS
from gateway.diagnostics.explanation import Explanation
from gateway.dialect import Dialect, KeyPlace, RequestMark, Route, RouteKind
from gateway.dialects.openapi import EVENT_STREAM, JSON, QueryParameter, Schema, events_of, json_text, reference
from gateway.dialects.route_table import RouteTable
from gateway.server.access.request_checks import OPEN_PATHS
from gateway.server.api.openapi_schemas import schemas

# The model of the examples; `dragoman demo` serves one of this name.
EXAMPLE_MODEL: Final = "demo-chat"


class Health(msgspec.Struct, frozen=True):
    """The state of the process."""

    status: str


class RouteDocument(msgspec.Struct, frozen=True):
    """The request and responses of one route: schemas by status and media type. `errors` are the statuses of its own,
    in the formats of `dialects`, whose keys it also reads. The example is that of the first one."""

    answers: Mapping[int, Mapping[str, Schema]]
    dialects: tuple[Dialect, ...]
    request: Schema | None = None
    errors: tuple[int, ...] = ()
    parameters: tuple[Schema, ...] = ()
    headers: Mapping[str, Schema] = {}


# A path and a method in lower case.
Place: TypeAlias = tuple[str, str]

_FEED: Final = events_of(
    "An endless stream of server-sent events: the notices and the outcome of each request, or the number of events "
    "that a slow reader has missed.",
    json_text({"type": "object"}, {"type": "integer"}),
)
_TEXT: Final = {"type": "string"}
_EXPLAIN: Final = {
    "name": "x-dragoman-explain",
    "in": "header",
    "description": "`1` puts every notice into the `dragoman` field of the response.",
    "schema": _TEXT,
}
_REQUEST_ID: Final = {"x-request-id": {"required": True, "schema": _TEXT}}
_ANSWER_HEADERS: Final = {
    "x-dragoman-backend": {"description": "The backend of the model.", "schema": _TEXT},
    "x-dragoman-changes": {
        "description": "The number of changes to the request and the response, by stage.",
        "schema": _TEXT,
    },
}
_METRICS: Final = {"type": "string", "description": "Prometheus text, or OpenMetrics if the `Accept` header names it."}
_KEYS: Final = "A client key of the gateway. A gateway without client keys ignores it."

# Malformed HTTP, a foreign origin, an unknown Host, a bug, and no room for another connection.
_ALWAYS: Final = (400, 403, 421, 500, 503)
_KEY: Final = (401,)
_BODY: Final = (408, 413, 415)
_BACKEND: Final = (502, *(fault.status for fault in FAULTS.values()))
_ERRORS: Final[Mapping[RouteKind, tuple[int, ...]]] = {
    "generate": (404, 429, *_BACKEND),
    "models": (404, 502, 504),
    "model": (404,),
    "count": (),
    "stored": (404,),
    "fixed": (),
    "refused": (),
}

# The gateway's own routes without a body, with their answers.
_OWN: Final[Mapping[str, Mapping[int, Mapping[str, Schema]]]] = {
    "/healthz": {200: {JSON: reference(Health)}},
    "/readyz": {200: {JSON: reference(Health)}, 503: {JSON: reference(Health)}},
    "/metrics": {200: {"text/plain": _METRICS, "application/openmetrics-text": _METRICS}},
    "/v1/events": {200: {EVENT_STREAM: _FEED}},
}


def describe_routes(app: FastAPI, dialects: RouteTable) -> None:
    """Publishes what every route takes and returns. The document raises KeyError for a route without an entry."""
    plain = app.openapi
    document: Schema = {}

    def openapi() -> Schema:
        if not document:
            document.update(_described(plain(), dialects))
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # the hook FastAPI documents for this


def documented_routes(dialects: RouteTable) -> dict[Place, RouteDocument]:
    """Returns the entries of the document for every route that it shows."""
    default = (dialects.default,)
    own = {(path, "get"): RouteDocument(answers, default) for path, answers in _OWN.items()}
    served: dict[Place, RouteDocument] = {}
    for dialect in dialects.dialects:
        for route in dialect.routes:
            if route.operation is not None:
                place = route.path, route.method.lower()
                document = _route_document(dialect, route)
                served[place] = _either(served[place], document) if place in served else document
    explain = RouteDocument(
        {200: {JSON: reference(Explanation)}},
        default,
        _any_of(reference(dialect.explain_type) for dialect in dialects.dialects),
        (*_BODY, 404),
        (_dialect_parameter(dialects),),
    )
    return {**own, **served, ("/v1/explain", "post"): explain}


def _route_document(dialect: Dialect, route: Route) -> RouteDocument:
    operation = route.operation
    assert operation is not None  # its caller leaves out the others
    generates = route.kind == "generate"
    names = re.findall(r"\{(\w+)\}", route.path)
    return RouteDocument(
        {200: operation.answers},
        (dialect,),
        None if operation.request is None else reference(operation.request),
        (*_ERRORS[route.kind], *(() if operation.request is None else _BODY)),
        (
            *[_path_parameter(name) for name in names],
            *[_query_parameter(parameter) for parameter in operation.parameters],
            *([_EXPLAIN] if generates else []),
            *([] if route.mark is None else [_mark_parameter(route.mark, dialect)]),
        ),
        _ANSWER_HEADERS if generates else {},
    )


def _either(one: RouteDocument, other: RouteDocument) -> RouteDocument:
    """Returns the entry of the document for a path that two dialects serve."""
    (mine,), (theirs,) = one.answers.values(), other.answers.values()
    both = {
        kind: _any_of(answers[kind] for answers in (mine, theirs) if kind in answers) for kind in {**mine, **theirs}
    }
    parameters = (*one.parameters, *[new for new in other.parameters if new not in one.parameters])
    dialects = (*one.dialects, *other.dialects)
    return msgspec.structs.replace(one, answers={200: both}, dialects=dialects, parameters=parameters)


def _mark_parameter(mark: RequestMark, dialect: Dialect) -> Schema:
    return {
        "name": mark.header.decode("ascii") or mark.parameter,
        "in": "header" if mark.header else "query",
        "description": f"Asks for the answer in the dialect {dialect.name}.",
        "schema": _TEXT,
    }


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameter(parameter: QueryParameter) -> Schema:
    name, description, schema = parameter
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _dialect_parameter(dialects: RouteTable) -> Schema:
    names = [dialect.name for dialect in dialects.dialects]
    schema = {"enum": names, "default": dialects.default.name}
    return {"name": "dialect", "in": "query", "description": "The dialect of the request.", "schema": schema}


def _any_of(choices: Iterable[Schema]) -> Schema:
    first, *others = choices
    return {"anyOf": [first, *others]} if others else first


def _described(document: Schema, dialects: RouteTable) -> Schema:
    documented = documented_routes(dialects)
    security = _security([dialects.default])
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation.update(_operation(path, documented[path, method], security))
    keys = {_key_name(place): _key_scheme(place) for dialect in dialects.dialects for place in dialect.key_places}
    components = {"schemas": schemas(_types(dialects)), "securitySchemes": keys}
    return {**document, "components": components, "security": security}


def _types(dialects: RouteTable) -> tuple[type[msgspec.Struct], ...]:
    """Returns every type that the document refers to."""
    found: list[type[msgspec.Struct]] = []
    for dialect in dialects.dialects:
        for route in dialect.routes:
            if route.operation is not None:
                found += [*route.operation.types, *([route.operation.request] if route.operation.request else [])]
        found += [dialect.error_type, dialect.explain_type]
    return (*dict.fromkeys(found), Explanation, Health)


def _operation(path: str, route: RouteDocument, usual: list[Schema]) -> Schema:
    """Returns the keys of an operation beside FastAPI's. `usual` are the keys of an operation that names none."""
    keyed = path not in OPEN_PATHS
    error_types = dict.fromkeys(dialect.error_type for dialect in route.dialects)
    failed = {JSON: _any_of(map(reference, error_types))}
    errors = {status: failed for status in (*_ALWAYS, *(_KEY if keyed else ()), *route.errors)}
    answers = {**errors, **route.answers}
    operation: Schema = {
        "responses": {str(status): _answer(status, answers[status], route.headers) for status in sorted(answers)}
    }
    if route.request is not None:
        hello: Schema = {"value": route.dialects[0].example(EXAMPLE_MODEL)}
        body = {"schema": route.request, "examples": {"hello": hello}}
        operation["requestBody"] = {"required": True, "content": {JSON: body}}
    if route.parameters:
        operation["parameters"] = [*route.parameters]
    if (security := _security(route.dialects) if keyed else []) != usual:
        operation["security"] = security
    return operation


def _answer(status: int, content: Mapping[str, Schema], headers: Mapping[str, Schema]) -> Schema:
    shown = {media_type: {"schema": schema} for media_type, schema in content.items()}
    return {"description": HTTPStatus(status).phrase, "headers": {**_REQUEST_ID, **headers}, "content": shown}


def _security(dialects: Iterable[Dialect]) -> list[Schema]:
    """Returns the places of a key, any one of which suffices."""
    names = dict.fromkeys(_key_name(place) for dialect in dialects for place in dialect.key_places)
    return [{name: []} for name in names]


def _key_name(place: KeyPlace) -> str:
    return place.scheme.lower() or place.name.decode("ascii")


def _key_scheme(place: KeyPlace) -> Schema:
    if place.scheme:
        return {"type": "http", "scheme": place.scheme.lower(), "description": _KEYS}
    return {"type": "apiKey", "in": place.where, "name": place.name.decode("ascii"), "description": _KEYS}
