"""Adds the routes below /inspect/api/requests/ID, which show one request."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gateway.core.errors import InvalidRequest
from gateway.inspector.views.answer import answer_view
from gateway.inspector.views.detail import Detail, detail
from gateway.inspector.views.page import Span, paged
from gateway.inspector.views.remade import Remade
from gateway.inspector.views.rows import MessageRow, message_rows
from gateway.inspector.views.sent import received_view, sent_view
from gateway.inspector.views.what_if import Rules
from gateway.recording.lines import RedactionLevel
from gateway.server.api.inspect.responses import API, json_response, read_value, reveals, span
from gateway.server.inspect.inspector import Inspector, absence
from gateway.server.log.logger import LOGGER

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


def add_request_routes(app: FastAPI, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""

    def level(request: Request, *ids: str) -> RedactionLevel:
        """Returns how far texts of these requests are redacted. Raises InvalidRequest where they are asked for and
        nobody gets them."""
        if not reveals(request):
            return inspector().shown_level
        inspector().check_reveal()
        named = " and ".join(one[:64] for one in ids)
        LOGGER.info("the words of the request %s were shown by the inspector", named)
        return "none"

    async def remade(request: Request, request_id: str) -> Remade:
        return await inspector().remade(request_id, level(request, request_id))

    @app.get(f"{API}/requests/{{request_id}}", include_in_schema=False)
    async def one(request: Request, request_id: str) -> Response:
        """The facts of one request beside its messages; notices quote words of them."""
        found = inspector()
        summary = await found.summary(request_id)
        shown = level(request, request_id)
        (summary,) = found.worded([summary], shown)
        if missing := absence(summary):
            return json_response(Detail.of(summary, missing))
        made = await found.remade(request_id, shown)
        previous = await found.previous(summary)
        return json_response(await found.thread.run(detail, summary, made, previous))

    @app.get(f"{API}/requests/{{request_id}}/messages", include_in_schema=False)
    async def messages(request: Request, request_id: str) -> Response:
        """Its messages at every stage, side by side."""
        positions, made = span(request), await remade(request, request_id)
        rows = await inspector().thread.run(message_rows, made, made.notices)
        return json_response(MessagePage.of(rows, positions))

    _add_body_routes(app, inspector, remade)

    @app.get(f"{API}/requests/{{request_id}}/answer", include_in_schema=False)
    async def answer(request: Request, request_id: str) -> Response:
        """The reads from the backend, their events, and the chunks that the client got."""
        positions, made = span(request), await remade(request, request_id)
        return json_response(await inspector().thread.run(answer_view, made, positions))

    @app.get(f"{API}/requests/{{request_id}}/diff", include_in_schema=False)
    async def diff(request: Request, request_id: str) -> Response:
        """How what was sent differs from the request before it in its conversation, or from another one: its messages,
        or (`of=sent`) its body."""
        found = inspector()
        against = request.query_params.get("against") or await found.previous(await found.summary(request_id))
        if against is None:
            raise InvalidRequest(
                "No earlier request of this conversation is here; name one.", status=404, code="unknown_request"
            )
        shown = level(request, request_id, against)
        if request.query_params.get("of") == "sent":
            return json_response(await found.sent_difference(request_id, against, shown))
        return json_response(await found.difference(request_id, against, shown))

    @app.post(f"{API}/explain", include_in_schema=False)
    async def explain(request: Request) -> Response:
        """The request to the backend under other rules. Nothing is sent."""
        rules = await read_value(request, Rules, _MOST_RULES, "rules")
        return json_response(await inspector().what_if(rules, level(request, rules.id)))


def _add_body_routes(
    app: FastAPI, inspector: Callable[[], Inspector], remade: Callable[[Request, str], Awaitable[Remade]]
) -> None:
    """Adds the routes of what came and of what was sent."""

    @app.get(f"{API}/requests/{{request_id}}/received", include_in_schema=False)
    async def received(request: Request, request_id: str) -> Response:
        """The client's request as it came."""
        return json_response(await inspector().thread.run(received_view, await remade(request, request_id)))

    @app.get(f"{API}/requests/{{request_id}}/sent", include_in_schema=False)
    async def sent(request: Request, request_id: str) -> Response:
        """The request to the backend, in every readable form."""
        return json_response(await inspector().thread.run(sent_view, await remade(request, request_id)))
