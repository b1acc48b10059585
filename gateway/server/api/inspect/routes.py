"""Adds the routes below /inspect/api that show the latest requests, and copies of them.

The middleware has checked who asks (`InspectorAccess`). None of them is in the OpenAPI document: they belong to this
version's own page and commands.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import msgspec
from fastapi import FastAPI
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.core.errors import InvalidRequest
from gateway.inspector.recorded_requests import RecordedRequests
from gateway.inspector.requests import Change
from gateway.inspector.sessions import SessionTree, session_trees
from gateway.inspector.summary import Summary
from gateway.inspector.texts import rule_text
from gateway.recording.export import EXPORTS, export
from gateway.recording.redact.redact import Redacted
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.page_routes import add_page_routes
from gateway.server.api.inspect.request_routes import add_request_routes
from gateway.server.api.inspect.responses import API, HEADERS, json_response, level, number, reveals
from gateway.server.api.inspect.send_routes import add_send_routes
from gateway.server.api.inspect.settings_routes import add_settings_routes
from gateway.server.inspect.inspector import Inspector
from gateway.server.log.logger import LOGGER

_LISTED: Final = 200
_MOST_LISTED: Final = 1000
_MOST_EXPORTED: Final = 1000
_MOST_GROUPED: Final = 2000
# Requests that are exported one by one with one seed have the same words replaced by the same.
_LONGEST_SEED: Final = 64
# So many of those are named in the log.
_MOST_LOGGED: Final = 20


class Sessions(msgspec.Struct, frozen=True):
    """The sessions of the newest requests that fit a filter. `grouped` counts the requests that were looked at, of
    `matching` ones: one may have no session, and older ones are not looked at."""

    sessions: Sequence[SessionTree]
    grouped: int
    matching: int


class Exported(msgspec.Struct, frozen=True):
    """Requests in the form that was asked for. `removed` counts secrets; `differences`, `needed` and `unchecked` are as
    in Redacted."""

    content: str
    requests: int
    removed: int
    differences: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    unchecked: int = 0


def add_inspect_routes(app: FastAPI, gateway_state: GatewayState, gateway: ASGIApp) -> None:
    """Adds the routes. `gateway` is the whole application, to which they send requests again."""

    def inspector() -> Inspector:
        found = gateway_state.inspector
        assert found is not None  # the middleware has checked it
        return found

    @app.get(f"{API}/requests", include_in_schema=False)
    async def requests(request: Request) -> Response:
        """The summaries of the newest requests, newest first."""
        before, limit = number(request, "before"), number(request, "limit")
        most = min(_LISTED if limit is None else limit, _MOST_LISTED)
        shown_level = inspector().list_level(reveals(request))
        found = await inspector().requests.listed(request.query_params.get("filter", ""), before, most)
        worded = await asyncio.to_thread(inspector().worded, found.requests, shown_level)
        return json_response(msgspec.structs.replace(found, requests=worded))

    @app.get(f"{API}/totals", include_in_schema=False)
    async def totals(request: Request) -> Response:
        """The sums of all requests that fit a filter, and how each backend has answered lately."""
        return json_response(await inspector().requests.totals(request.query_params.get("filter", "")))

    @app.get(f"{API}/sessions", include_in_schema=False)
    async def sessions(request: Request) -> Response:
        """The sessions of the newest requests, and in each its agents as a tree."""
        shown_level = inspector().list_level(reveals(request))
        found = await inspector().requests.listed(request.query_params.get("filter", ""), None, _MOST_GROUPED)
        trees = await asyncio.to_thread(inspector().worded_sessions, session_trees(found.requests), shown_level)
        return json_response(Sessions(trees, len(found.requests), found.matching))

    @app.delete(f"{API}/requests", include_in_schema=False)
    async def forget() -> Response:
        """Forgets all requests that have ended."""
        await inspector().forget()
        return Response(status_code=204, headers=HEADERS)

    @app.get(f"{API}/export", include_in_schema=False)
    async def exported(request: Request) -> Response:
        """Requests as a recording, a HAR, curl commands, a script or a test, redacted."""
        # The same one a thousand times would take a thousand times its memory.
        ids = [*dict.fromkeys(request.query_params.getlist("id"))][:_MOST_EXPORTED]
        kind, redaction = request.query_params.get("as", "recording"), level(request)
        if kind not in EXPORTS:
            raise InvalidRequest(f"Unknown form {kind[:40]!r}. Known forms: {', '.join(EXPORTS)}.", param="as")
        keep, seed = request.query_params.getlist("keep"), request.query_params.get("seed")
        redacted = await inspector().export(ids, redaction, keep, seed and seed[:_LONGEST_SEED])
        if redaction == "none":
            named = ", ".join(one[:64] for one in ids[:_MOST_LOGGED])
            LOGGER.info("the contents of %d requests were exported with their words: %s", len(ids), named)
        url = str(request.base_url).rstrip("/")
        return json_response(_exported(redacted, kind, ids, url))

    @app.get(f"{API}/stream", include_in_schema=False)
    async def stream(request: Request) -> Response:
        """A live stream of requests that begin and end; while somebody reads it, contents are kept. 204 for a
        recording, in which nothing changes: a reader of server-sent events does not ask again."""
        source, after = inspector().requests, number(request, "after")
        if isinstance(source, RecordedRequests):
            return Response(status_code=204, headers=HEADERS)
        worded = partial(inspector().worded, level=inspector().list_level(reveals(request)))
        return EventSourceResponse(_events(source.watch(after), worded), ping=15, headers=HEADERS)

    @app.get(f"{API}/rules/{{rule}}", include_in_schema=False)
    async def rule_documentation(rule: str) -> Response:
        """The meaning of a rule, as the documentation says it."""
        return json_response(rule_text(rule))

    add_page_routes(app)
    add_settings_routes(app, gateway_state, inspector)
    add_request_routes(app, inspector)
    add_send_routes(app, gateway_state, gateway, inspector)


def _exported(redacted: Redacted, kind: str, ids: Sequence[str], url: str) -> Exported:
    content = export(redacted.recording, kind, url)
    return Exported(content, len(ids), redacted.removed, redacted.differences, redacted.needed, redacted.unchecked)


async def _events(
    found: AsyncGenerator[Sequence[Change], None], worded: Callable[[Sequence[Summary]], Sequence[Summary]]
) -> AsyncIterator[bytes]:
    # Closed with the client's connection: contents are kept only while somebody watches.
    async with aclosing(found):
        async for changes in found:
            yield b"".join([_event(change, worded) for change in changes])


def _event(change: Change, worded: Callable[[Sequence[Summary]], Sequence[Summary]]) -> bytes:
    data = {"missed": change.missed} if change.summary is None else worded([change.summary])[0]
    return ServerSentEvent(msgspec.json.encode(data).decode(), event=change.kind, id=str(change.number)).encode()
