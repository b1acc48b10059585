"""Adds the routes below /inspect/api: the latest requests, their stages, and copies of them.

The middleware has checked who asks (`InspectorAccess`). None of them is in the OpenAPI document: they belong to this
version's own page and commands.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, get_args

import msgspec
from fastapi import FastAPI
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from gateway.core.errors import InvalidRequest
from gateway.dialects.openapi import JSON
from gateway.recording.export import EXPORTS, export
from gateway.recording.lines import RedactionLevel
from gateway.recording.redact.redact import Redacted
from gateway.server.api.gateway_state import GatewayState
from gateway.server.inspect.access import INSPECT
from gateway.server.inspect.filter import read_filter
from gateway.server.inspect.inspector import Inspector
from gateway.server.inspect.ring import Change
from gateway.server.telemetry.log import LOGGER

API: Final = f"{INSPECT}/api"
# No page of another origin may read an answer, and nothing keeps a copy.
HEADERS: Final = {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_MOST_LISTED: Final = 1000
_MOST_EXPORTED: Final = 1000


class Exported(msgspec.Struct, frozen=True):
    """Requests in the form that was asked for. `blotted` counts secrets; `differences` and `needed` as in Redacted."""

    content: str
    requests: int
    blotted: int
    differences: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


def add_inspect_routes(app: FastAPI, gateway_state: GatewayState) -> None:
    """Adds the routes."""

    def inspector() -> Inspector:
        found = gateway_state.inspector
        assert found is not None  # the middleware has checked it
        return found

    @app.get(f"{API}/requests", include_in_schema=False)
    async def requests(request: Request) -> Response:
        """The summaries of the newest requests, newest first."""
        matches = read_filter(request.query_params.get("filter", ""))
        before = _number(request, "before")
        limit = min(_number(request, "limit") or 200, _MOST_LISTED)
        return _json({"requests": inspector().ring.listed(matches, before, limit)})

    @app.delete(f"{API}/requests", include_in_schema=False)
    async def forget() -> Response:
        """Forgets all requests that have ended."""
        inspector().ring.clear()
        return Response(status_code=204, headers=HEADERS)

    @app.get(f"{API}/requests/{{request_id}}", include_in_schema=False)
    async def summary(request_id: str) -> Response:
        """The summary of one request."""
        return _json(inspector().summary(request_id))

    @app.get(f"{API}/requests/{{request_id}}/stages", include_in_schema=False)
    async def stages(request_id: str) -> Response:
        """The stages of one request, made again from its bytes."""
        found = await inspector().stages(request_id, gateway_state.settings)
        shown: Any = msgspec.json.decode(gateway_state.redact(msgspec.json.encode(found).decode()))
        return _json(shown)

    @app.get(f"{API}/export", include_in_schema=False)
    async def exported(request: Request) -> Response:
        """Requests as a recording, a HAR or curl commands, redacted."""
        ids = request.query_params.getlist("id")[:_MOST_EXPORTED]
        kind, level = request.query_params.get("as", "recording"), _level(request)
        if kind not in EXPORTS:
            raise InvalidRequest(f"Unknown form {kind[:40]!r}. Known forms: {', '.join(EXPORTS)}.", param="as")
        keep = request.query_params.getlist("keep")
        secrets = gateway_state.backends.secrets
        redacted = await inspector().export(ids, level, gateway_state.settings, secrets, keep)
        if level == "none":
            LOGGER.info("the contents of %d requests were exported with their words", len(ids))
        return _json(_exported(redacted, kind, ids))

    @app.get(f"{API}/stream", include_in_schema=False)
    async def stream(request: Request) -> Response:
        """A live stream of requests that begin and end; while somebody reads it, contents are kept."""
        changes = inspector().ring.watch(_number(request, "after"))
        return EventSourceResponse(_events(changes), ping=15, headers=HEADERS)


def _exported(redacted: Redacted, kind: str, ids: Sequence[str]) -> Exported:
    content = export(redacted.recording, kind)
    return Exported(content, len(ids), redacted.blotted, redacted.differences, redacted.needed)


async def _events(changes: AsyncIterator[Change]) -> AsyncIterator[dict[str, str]]:
    async for change in changes:
        data = {"missed": change.missed} if change.summary is None else change.summary
        yield {"event": change.kind, "id": str(change.number), "data": msgspec.json.encode(data).decode()}


def _number(request: Request, name: str) -> int | None:
    value = request.query_params.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise InvalidRequest(f"{name} must be a whole number.", param=name)
    return int(value)


def _level(request: Request) -> RedactionLevel:
    level = request.query_params.get("redact", "shape")
    for known in get_args(RedactionLevel):
        if level == known:
            found: RedactionLevel = known
            return found
    known_levels = ", ".join(get_args(RedactionLevel))
    raise InvalidRequest(f"Unknown level {level[:40]!r}. Known levels: {known_levels}.", param="redact")


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON, headers=HEADERS)
