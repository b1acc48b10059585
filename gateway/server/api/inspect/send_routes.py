"""Adds the routes below /inspect/api that send something to a backend; `inspector.send` allows it."""

from collections.abc import Callable
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.server.api.dialect_routes import read_client_body
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.doctor import Doctor, doctor_view
from gateway.server.api.inspect.responses import API, json_response, read_value, redacted_response
from gateway.server.inspect.inspector import Inspector

_MOST_BODY: Final = 2**10


class Sent(msgspec.Struct, frozen=True):
    """The `id` of a request that is sent again."""

    id: str


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a backend."""

    backend: str


def add_send_routes(app: FastAPI, gateway_state: GatewayState, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""
    doctor = Doctor(gateway_state)

    @app.get(f"{API}/doctor", include_in_schema=False)
    async def backends() -> Response:
        """The backends that can be asked, and how many questions each is asked at most."""
        return json_response(doctor_view(gateway_state))

    @app.post(f"{API}/doctor", include_in_schema=False)
    async def ask(request: Request) -> Response:
        """Asks a backend the questions of the doctor. The answer has its findings."""
        inspector().resend.check()
        asked = await read_value(request, _Asked, _MOST_BODY, "backend")
        return redacted_response(await doctor.ask(asked.backend), gateway_state.redact)

    @app.post(f"{API}/requests/{{request_id}}/send", include_in_schema=False)
    async def send(request: Request, request_id: str) -> Response:
        """Sends the request once more, as a request of the inspector. The answer names the new one, which goes on."""
        found = inspector()
        found.resend.check()
        # Its type is checked, which no form of another page can have; it says nothing.
        await read_client_body(request, _MOST_BODY)
        contents = await found.contents(request_id)
        return json_response(Sent(await found.resend.send(app, contents.interaction)), status=202)
