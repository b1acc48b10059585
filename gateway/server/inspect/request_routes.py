"""Adds the routes below /inspect/api/requests/ID, which show one request."""

from collections.abc import Callable, Sequence

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.recording.lines import RedactionLevel
from gateway.server.api.gateway_state import GatewayState
from gateway.server.inspect.inspector import Inspector, absence
from gateway.server.inspect.responses import API, json_response, span
from gateway.server.inspect.views.answer import answer_view
from gateway.server.inspect.views.detail import Detail, detail
from gateway.server.inspect.views.page import paged
from gateway.server.inspect.views.remade import Remade
from gateway.server.inspect.views.rows import MessageRow, message_rows
from gateway.server.inspect.views.sent import sent_view
from gateway.server.telemetry.log import LOGGER


class MessagePage(msgspec.Struct, frozen=True, rename={"start": "from", "stop": "to"}):
    """The rows of some positions."""

    total: int
    start: int
    stop: int
    rows: Sequence[MessageRow]


def add_request_routes(app: FastAPI, gateway_state: GatewayState, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""

    async def remade(request_id: str, level: RedactionLevel) -> Remade:
        return await inspector().remade(request_id, level, gateway_state.settings, gateway_state.backends.secrets)

    async def asked(request: Request, request_id: str) -> Remade:
        """Returns the request with its words, where they are asked for and may be shown."""
        if request.query_params.get("reveal") != "1":
            return await remade(request_id, "shape")
        inspector().check_reveal()
        LOGGER.info("the words of the request %s were shown by the inspector", request_id[:64])
        return await remade(request_id, "none")

    @app.get(f"{API}/requests/{{request_id}}", include_in_schema=False)
    async def one(request_id: str) -> Response:
        """What is known of one request beside its texts."""
        found = inspector()
        summary = found.summary(request_id)
        if missing := absence(summary):
            return json_response(Detail.of(summary, missing))
        made = await remade(request_id, "shape")
        notices = found.interaction(request_id).notices
        return json_response(await found.in_thread(detail, summary, made, notices, found.ring.previous(request_id)))

    @app.get(f"{API}/requests/{{request_id}}/messages", include_in_schema=False)
    async def messages(request: Request, request_id: str) -> Response:
        """Its messages at every stage, side by side."""
        positions = span(request)
        rows = await inspector().in_thread(message_rows, await asked(request, request_id))
        start, stop, found = paged(rows, positions)
        return json_response(MessagePage(len(rows), start, stop, found))

    @app.get(f"{API}/requests/{{request_id}}/sent", include_in_schema=False)
    async def sent(request: Request, request_id: str) -> Response:
        """What was sent to the backend, in every readable form."""
        return json_response(await inspector().in_thread(sent_view, await asked(request, request_id)))

    @app.get(f"{API}/requests/{{request_id}}/answer", include_in_schema=False)
    async def answer(request: Request, request_id: str) -> Response:
        """The reads from the backend, their events, and the chunks that the client got."""
        positions = span(request)
        return json_response(await inspector().in_thread(answer_view, await asked(request, request_id), positions))
