"""Adds the routes below /inspect/api/requests/ID, which show one request."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.core.errors import InvalidRequest
from gateway.recording.lines import RedactionLevel
from gateway.server.api.dialect_routes import read_client_body
from gateway.server.api.gateway_state import GatewayState
from gateway.server.inspect.inspector import Inspector, absence
from gateway.server.inspect.responses import API, json_response, span
from gateway.server.inspect.views.answer import answer_view
from gateway.server.inspect.views.detail import Detail, detail
from gateway.server.inspect.views.page import Span, paged
from gateway.server.inspect.views.remade import Remade
from gateway.server.inspect.views.rows import MessageRow, message_rows
from gateway.server.inspect.views.sent import sent_view
from gateway.server.inspect.views.what_if import read_rules
from gateway.server.telemetry.log import LOGGER

# A body with the rules of a what-if is no larger.
_MOST_RULES: Final = 2**16


class MessagePage(msgspec.Struct, frozen=True, rename={"start": "from", "stop": "to"}):
    """The rows of some positions."""

    total: int
    start: int
    stop: int
    rows: Sequence[MessageRow]

    @classmethod
    def of(cls, rows: Sequence[MessageRow], positions: Span) -> "MessagePage":
        """Returns as many of the rows as one answer holds."""
        start, stop, found = paged(rows, positions)
        return cls(len(rows), start, stop, found)


def add_request_routes(app: FastAPI, gateway_state: GatewayState, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""

    async def remade(request_id: str, level: RedactionLevel) -> Remade:
        return await inspector().remade(request_id, level, gateway_state.settings, gateway_state.backends.secrets)

    def level(request: Request, request_id: str) -> RedactionLevel:
        """Returns how far texts are redacted. Raises InvalidRequest where they are asked for and nobody gets them."""
        if request.query_params.get("reveal") != "1":
            return "shape"
        inspector().check_reveal()
        LOGGER.info("the words of the request %s were shown by the inspector", request_id[:64])
        return "none"

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
        found = inspector()
        made = await remade(request_id, level(request, request_id))
        rows = await found.in_thread(message_rows, made, found.interaction(request_id).notices)
        return json_response(MessagePage.of(rows, positions))

    @app.get(f"{API}/requests/{{request_id}}/sent", include_in_schema=False)
    async def sent(request: Request, request_id: str) -> Response:
        """What was sent to the backend, in every readable form."""
        made = await remade(request_id, level(request, request_id))
        return json_response(await inspector().in_thread(sent_view, made))

    @app.get(f"{API}/requests/{{request_id}}/answer", include_in_schema=False)
    async def answer(request: Request, request_id: str) -> Response:
        """The reads from the backend, their events, and the chunks that the client got."""
        positions = span(request)
        made = await remade(request_id, level(request, request_id))
        return json_response(await inspector().in_thread(answer_view, made, positions))

    @app.get(f"{API}/requests/{{request_id}}/diff", include_in_schema=False)
    async def diff(request: Request, request_id: str) -> Response:
        """How what was sent differs from the request before it in its conversation, or from another one."""
        found, settings, secrets = inspector(), gateway_state.settings, gateway_state.backends.secrets
        against = request.query_params.get("against") or found.ring.previous(request_id)
        if against is None:
            found.interaction(request_id)
            raise InvalidRequest(
                "No earlier request of this conversation is here; name one.", status=404, code="unknown_request"
            )
        redaction = level(request, request_id)
        return json_response(await found.difference(request_id, against, redaction, settings, secrets))

    @app.post(f"{API}/explain", include_in_schema=False)
    async def explain(request: Request) -> Response:
        """What would be sent for a request under other rules. Nothing is sent."""
        rules = read_rules(await read_client_body(request, _MOST_RULES))
        settings, secrets = gateway_state.settings, gateway_state.backends.secrets
        return json_response(await inspector().what_if(rules, level(request, rules.id), settings, secrets))
