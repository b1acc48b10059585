"""Adds the routes below /inspect/api that send something to a backend: a request once more, and the questions of
`dragoman doctor`. `inspector.send` allows it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.core.errors import InvalidRequest
from gateway.diagnostics.doctor.examination import chosen
from gateway.diagnostics.doctor.finding import Section
from gateway.server.api.dialect_routes import read_client_body
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.responses import API, json_response, read_value, redacted_response
from gateway.server.doctor.examine_backend import examine_backend
from gateway.server.inspect.inspector import Inspector
from gateway.server.log.logger import LOGGER

_MOST_BODY: Final = 2**10


class DoctorView(msgspec.Struct, frozen=True):
    """The backends that can be asked, and how many questions each is asked at most."""

    backends: Sequence[str]
    questions: int


def doctor_view(state: GatewayState) -> DoctorView:
    """Returns the facts that a person needs before a backend is asked."""
    return DoctorView([*state.settings.backends], sum(probe.questions for probe in chosen(slow=False)))


class Doctor:
    """Asks one backend at a time. The questions belong to no client: they count for no key."""

    def __init__(self, state: GatewayState) -> None:
        self._state = state
        self._asking = asyncio.Lock()

    async def ask(self, name: str) -> Section:
        """Returns the findings about a backend. Raises InvalidRequest for an unknown one, and while another one is
        asked."""
        state = self._state
        backend = state.backends.known(name)
        if backend is None:
            raise InvalidRequest(f"There is no backend {name[:64]!r}.", status=404, code="unknown_backend")
        if self._asking.locked():
            raise InvalidRequest("A backend is being asked already.", status=503, code="overloaded")
        LOGGER.info("the inspector asks the backend %s the questions of the doctor", name)
        async with self._asking:
            examined = await examine_backend(
                state.settings, backend, "", state.transport, chosen(slow=False), lambda probe: None
            )
        return examined.section


class Sent(msgspec.Struct, frozen=True):
    """The `id` of a request that is sent again."""

    id: str


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a backend."""

    backend: str


def add_send_routes(
    app: FastAPI, gateway_state: GatewayState, gateway: ASGIApp, inspector: Callable[[], Inspector]
) -> None:
    """Adds the routes. `gateway` serves what is sent again."""
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
        return json_response(Sent(await found.resend.send(gateway, contents.interaction)), status=202)
