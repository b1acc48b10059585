"""Opens the WebSocket of a client, whose events are then served as requests: checks its upgrade as any request is
checked, before it is accepted. Loaded with the first upgrade.
"""

from contextlib import ExitStack
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.errors import GatewayError, InvalidRequest
from gateway.dialect import Dialect, ErrorAnswer, RequestHead
from gateway.server.access.request_checks import check_single, check_site, check_upgrade_origin
from gateway.server.api.gateway_state import GatewayState, shutdown
from gateway.server.api.middleware import OTHER, report
from gateway.server.api.websocket_session import WebSocketSession
from gateway.server.telemetry.request_context import RequestContext

_SWITCHED: Final = 101
# A server that cannot send the error of a refused upgrade answers with this status by itself.
_FORBIDDEN: Final = 403
_DENIAL: Final = "websocket.http.response"


async def serve_websocket(state: GatewayState, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Serves a WebSocket until it is closed; `app` serves the requests that its events are."""
    headers = dict(scope["headers"])
    head = RequestHead(scope["path"], scope["query_string"], headers)
    served = state.dialects.find("GET", head.path)
    dialect = served.dialect
    context = RequestContext(
        "GET", head.path, OTHER, headers, state.observers, dialect.paths, dialect.name, served.path
    )
    await receive()
    status = _SWITCHED
    with ExitStack() as concluding:
        concluding.callback(lambda: context.conclude(status))
        try:
            session = _admitted(state, app, scope, context, dialect, head)
        except GatewayError as error:
            report(context, error)
            # What a dialect changes of a status is for clients that would post the request again.
            answer = dialect.encode_error(error, context.id)._replace(status=error.status)
            status = await _refuse(scope, send, answer, context.id)
            return
        await send({"type": "websocket.accept", "headers": [(b"x-request-id", context.id.encode("ascii"))]})
    await session.run(receive)


def _admitted(
    state: GatewayState, app: ASGIApp, scope: Scope, context: RequestContext, dialect: Dialect, head: RequestHead
) -> WebSocketSession:
    """Returns the session of an upgrade. Raises GatewayError for one that is refused."""
    check_single(scope["headers"], [place.name for place in dialect.key_places if place.where == "header"])
    state.hosts.check(head.headers)
    check_site(head.headers)
    check_upgrade_origin(head.headers)
    context.key = state.keys.check(head, dialect.key_places)
    spoken = state.dialects.extensions[dialect.name].websocket
    if spoken is None or head.path not in state.dialects.websockets:
        raise InvalidRequest("There is no WebSocket at this path.", status=404, code="unknown_url")
    if not state.ready:
        raise shutdown()
    return WebSocketSession(state, app, scope, spoken, head, context.key)


async def _refuse(scope: Scope, send: Send, answer: ErrorAnswer, request_id: str) -> int:
    """Refuses an upgrade, with the error where the server can send it. Returns the status."""
    if _DENIAL not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return _FORBIDDEN
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", request_id.encode("ascii")),
        *[(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in answer.headers.items()],
    ]
    await send({"type": f"{_DENIAL}.start", "status": answer.status, "headers": headers})
    await send({"type": f"{_DENIAL}.body", "body": answer.body})
    return answer.status
