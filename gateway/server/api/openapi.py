"""Builds the published OpenAPI document from the routes and the project's own types.

FastAPI lists the routes; msgspec decodes and encodes their bodies, so the table here declares what each route takes and
returns.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from fastapi import FastAPI
from fastapi.responses import Response

from gateway.core.backend_status import FAULTS
from gateway.diagnostics.explain import Explanation
from gateway.dialects.openai_chat.request_models import ChatCompletionRequest, FreeObject
from gateway.dialects.openai_chat.response_models import (
    ChatCompletion,
    ChatCompletionChunk,
    ErrorBody,
    Model,
    ModelList,
)
from gateway.server.access.request_checks import OPEN_PATHS
from gateway.server.api.openapi_schemas import Schema, reference, schemas

PATH: Final = "/v1/chat/completions"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class Health(msgspec.Struct, frozen=True):
    """The state of the process."""

    status: str


class ExplainRequest(ChatCompletionRequest, frozen=True, kw_only=True):
    """A chat completions request; without a model it is for the first one. `profile` and `settings` (policy keys)
    override those of the model."""

    model: Annotated[str, msgspec.Meta(pattern=r"\S")] | msgspec.UnsetType = msgspec.UNSET  # type: ignore[assignment]  # optional here
    n: int | None = None
    profile: str | None = None
    settings: FreeObject | None = None


class Told(msgspec.Struct, frozen=True):
    """The request and responses of one route: schemas by status and media type. `errors` are the statuses of its
    own."""

    answers: Mapping[int, Mapping[str, Schema]]
    takes: type[msgspec.Struct] | None = None
    errors: tuple[int, ...] = ()
    parameters: tuple[Schema, ...] = ()
    headers: Mapping[str, Schema] = {}


def _events(description: str, *data: Schema) -> Schema:
    """Returns the schema of every event of a stream."""
    fields = {"event": {"type": "string"}, "data": {"anyOf": [*data]}}
    return {"type": "object", "description": description, "properties": fields, "required": ["data"]}


def _text_of(*content: Schema) -> Schema:
    return {"type": "string", "contentMediaType": JSON, "contentSchema": {"anyOf": [*content]}}


_FRAMES: Final = _events(
    "Server-sent events. The last is `[DONE]` or, when the answer failed on its way, an error.",
    {"const": "[DONE]"},
    _text_of(reference(ChatCompletionChunk), reference(ErrorBody)),
)
_FEED: Final = _events(
    "Server-sent events without an end: what is told of each request, or how many of these a slow reader has missed.",
    _text_of({"type": "object"}, {"type": "integer"}),
)
_TEXT: Final = {"type": "string"}
_NAME: Final = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_EXPLAIN: Final = {
    "name": "x-dragoman-explain",
    "in": "header",
    "description": "`1` puts every notice into the `dragoman` field of the answer.",
    "schema": _TEXT,
}
_REQUEST_ID: Final = {"x-request-id": {"required": True, "schema": _TEXT}}
_SAID: Final = {
    "x-dragoman-backend": {"description": "The backend that was chosen.", "schema": _TEXT},
    "x-dragoman-changes": {"description": "What was changed on the way, counted by stage.", "schema": _TEXT},
}
_METRICS: Final = {"type": "string", "description": "Prometheus text, or OpenMetrics where it is asked for."}

# Malformed HTTP, a foreign origin, an unknown Host, a bug, and no room for another connection.
_ALWAYS: Final = (400, 403, 421, 500, 503)
_KEY: Final = (401,)
_BODY: Final = (413, 415)
_BACKEND: Final = (502, *(fault.status for fault in FAULTS.values()))

TOLD: Final[Mapping[str, Told]] = {
    "/healthz": Told({200: {JSON: reference(Health)}}),
    "/readyz": Told({200: {JSON: reference(Health)}, 503: {JSON: reference(Health)}}),
    "/metrics": Told({200: {"text/plain": _METRICS, "application/openmetrics-text": _METRICS}}),
    "/v1/models": Told({200: {JSON: reference(ModelList)}}, errors=(404, 502, 504)),
    "/v1/models/{name}": Told({200: {JSON: reference(Model)}}, errors=(404,), parameters=(_NAME,)),
    "/v1/events": Told({200: {EVENTS: _FEED}}),
    "/v1/explain": Told({200: {JSON: reference(Explanation)}}, ExplainRequest, (*_BODY, 404, 408)),
    PATH: Told(
        {200: {JSON: reference(ChatCompletion), EVENTS: _FRAMES}},
        ChatCompletionRequest,
        (*_BODY, 404, 408, 429, *_BACKEND),
        (_EXPLAIN,),
        _SAID,
    ),
}
SHOWN: Final = (
    *(ChatCompletionRequest, ChatCompletion, ChatCompletionChunk, ErrorBody),
    *(ExplainRequest, Explanation, Model, ModelList, Health),
)

_HELLO: Final = {"value": {"model": "demo-chat", "messages": [{"role": "user", "content": "Hello"}]}}
_KEYS: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "One of the gateway's own keys. A gateway that has none reads no key.",
}


def describe_chat(app: FastAPI) -> None:
    """Lists the route that the middleware serves ahead of the application. (Requests that still arrive here get its
    405.)"""

    @app.post(PATH, tags=["chat"])
    @app.post("/chat/completions", include_in_schema=False)
    async def create_chat_completion() -> Response:
        """A chat completion, whole or (`stream: true`) as server-sent events."""
        raise AssertionError("served by the front")


def describe_routes(app: FastAPI) -> None:
    """Publishes the entry of `TOLD` for every route. The document raises KeyError for a route without an entry."""
    plain = app.openapi
    document: Schema = {}

    def openapi() -> Schema:
        if not document:
            document.update(_described(plain()))
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # the hook FastAPI documents for this


def _described(document: Schema) -> Schema:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation.update(_operation(path, TOLD[path]))
    components = {"schemas": schemas(SHOWN), "securitySchemes": {"key": _KEYS}}
    return {**document, "components": components, "security": [{"key": []}]}


def _operation(path: str, told: Told) -> Schema:
    keyed = path not in OPEN_PATHS
    failed = {JSON: reference(ErrorBody)}
    errors = {status: failed for status in (*_ALWAYS, *(_KEY if keyed else ()), *told.errors)}
    answers = {**errors, **told.answers}
    operation: Schema = {
        "responses": {str(status): _answer(status, answers[status], told.headers) for status in sorted(answers)}
    }
    if told.takes is not None:
        body = {"schema": reference(told.takes), "examples": {"hello": _HELLO}}
        operation["requestBody"] = {"required": True, "content": {JSON: body}}
    if told.parameters:
        operation["parameters"] = [*told.parameters]
    return operation if keyed else {**operation, "security": []}


def _answer(status: int, content: Mapping[str, Schema], headers: Mapping[str, Schema]) -> Schema:
    shown = {media_type: {"schema": schema} for media_type, schema in content.items()}
    return {"description": HTTPStatus(status).phrase, "headers": {**_REQUEST_ID, **headers}, "content": shown}
