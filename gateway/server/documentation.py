"""The request type of the hot route -> its place in the published OpenAPI document."""

from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.responses import Response

from gateway.dialects.openai_chat.schema import ChatCompletionRequest

PATH: Final = "/v1/chat/completions"


def describe_chat(app: FastAPI) -> None:
    """List the route that the front serves ahead of the application. (What still arrives here gets its 405.)"""
    (reference,), components = msgspec.json.schema_components(
        [ChatCompletionRequest], ref_template="#/components/schemas/{name}"
    )

    @app.post(
        PATH,
        tags=["chat"],
        response_class=Response,
        responses={200: {"content": {"application/json": {}, "text/event-stream": {}}}},
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": reference}}}},
    )
    @app.post("/chat/completions", include_in_schema=False)
    async def create_chat_completion() -> Response:
        """A chat completion, whole or (`stream: true`) as server-sent events."""
        raise AssertionError("served by the front")

    plain = app.openapi

    def openapi() -> dict[str, Any]:  # OpenAPI documents are untyped in FastAPI
        document = plain()
        document.setdefault("components", {}).setdefault("schemas", {}).update(components)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # the hook FastAPI documents for this
