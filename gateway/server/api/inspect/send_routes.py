"""Adds the routes below /inspect/api that send something to a backend: a request once more, one that was written in the
page, and the questions of `dragoman doctor`. `inspector.send` allows it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from fastapi import FastAPI
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.core.errors import InvalidRequest
from gateway.diagnostics.doctor.examination import chosen
from gateway.diagnostics.doctor.finding import Section
from gateway.recording.lines import RequestLine
from gateway.recording.recording import Interaction
from gateway.recording.route import request_head
from gateway.server.api.dialect_routes import read_client_body
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.responses import API, HEADERS, json_response, read_value, redacted_response
from gateway.server.doctor.examine_backend import examine_backend
from gateway.server.inspect.inspector import Inspector
from gateway.server.inspect.sent_answer import AnswerEnded, AnswerPiece
from gateway.server.log.logger import LOGGER

_MOST_BODY: Final = 2**10
# A body that is written in the page is no larger.
_MOST_WRITTEN: Final = 2**20
_TO_CHAT: Final = "/v1/chat/completions"
_OF_PAGE: Final[Mapping[str, str]] = {"content-type": "application/json"}


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
    """The `id` of a request that is sent."""

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
        inspector().sent.check()
        asked = await read_value(request, _Asked, _MOST_BODY, "backend")
        return redacted_response(await doctor.ask(asked.backend), gateway_state.redact)

    @app.post(f"{API}/requests/{{request_id}}/send", include_in_schema=False)
    async def send(request: Request, request_id: str) -> Response:
        """Sends the request once more, as a request of the inspector. The answer names the new one, which goes on."""
        found = inspector()
        found.sent.check()
        # Its type is checked, which no form of another page can have; it says nothing.
        await read_client_body(request, _MOST_BODY)
        contents = await found.contents(request_id)
        return json_response(Sent(await found.sent.send(gateway, contents.interaction)), status=202)

    @app.post(f"{API}/send", include_in_schema=False)
    async def send_written(request: Request) -> Response:
        """Sends the body as a request of the inspector to the path that is named, with the head of a kept request where
        one is. The answer is a stream of server-sent events: the id of the new request, what its answer says as it
        comes, and how it ends. A client that leaves ends the request, too."""
        found = inspector()
        found.sent.check()
        body = await _read_written(request)
        kept = request.query_params.get("like")
        like = RequestLine(1, "", "", "POST", _TO_CHAT, _OF_PAGE)
        if kept is not None:
            like = (await found.contents(kept)).interaction.request
        path = request.query_params.get("path") or like.path
        written = Interaction(msgspec.structs.replace(like, method="POST", path=path))
        _check_path(gateway_state, written)
        return EventSourceResponse(_events(found.sent.answer(gateway, written, body)), ping=15, headers=HEADERS)


async def _read_written(request: Request) -> bytes:
    """Returns a body that was written in the page. Raises InvalidRequest, a 413 for a larger one."""
    try:
        return await read_client_body(request, _MOST_WRITTEN)
    except InvalidRequest as error:
        if error.status == 413:
            error.message = (
                f"The page sends bodies of up to 1 MB ({_MOST_WRITTEN} bytes): send a larger one with another client."
            )
        raise


def _check_path(state: GatewayState, written: Interaction) -> None:
    """Raises InvalidRequest for a path where no model answers: the page sends to no other."""
    head = request_head(written)
    served = state.dialects.find("POST", head.path)
    if (served.select(head) if served.marked else served).kind != "generate":
        raise InvalidRequest(
            f"The page sends to paths at which a model answers, such as {_TO_CHAT}; {head.path[:64]!r} is none.",
            param="path",
        )


async def _events(
    told: AsyncGenerator[str | Sequence[AnswerPiece] | AnswerEnded, None],
) -> AsyncIterator[bytes]:
    # Closed with the connection of the page: the request ends, too.
    async with aclosing(told):
        async for one in told:
            yield _event(one)


def _event(told: str | Sequence[AnswerPiece] | AnswerEnded) -> bytes:
    if isinstance(told, str):
        return _written("begun", Sent(told))
    return _written("ended" if isinstance(told, AnswerEnded) else "pieces", told)


def _written(name: str, value: Sent | Sequence[AnswerPiece] | AnswerEnded) -> bytes:
    return ServerSentEvent(msgspec.json.encode(value).decode(), event=name).encode()
