"""Adds the route below /inspect/api that sends something to a backend; `inspector.send` allows it."""

from collections.abc import Callable
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.server.api.dialect_routes import read_client_body
from gateway.server.inspect.inspector import Inspector
from gateway.server.inspect.responses import API, json_response

_MOST_BODY: Final = 2**10


class Sent(msgspec.Struct, frozen=True):
    """The `id` of a request that is sent again."""

    id: str


def add_send_routes(app: FastAPI, inspector: Callable[[], Inspector]) -> None:
    """Adds the route."""

    @app.post(f"{API}/requests/{{request_id}}/send", include_in_schema=False)
    async def send(request: Request, request_id: str) -> Response:
        """Sends the request once more, as a request of the inspector. The answer names the new one, which goes on."""
        found = inspector()
        found.resend.check()
        # Its type is checked, which no form of another page can have; it says nothing.
        await read_client_body(request, _MOST_BODY)
        contents = await found.contents(request_id)
        return json_response(Sent(await found.resend.send(app, contents.interaction)), status=202)
