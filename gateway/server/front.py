"""The outermost ASGI layer: ids, admission, the hot route, and the one place where every failure becomes an answer."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.dialects.openai_chat.remarks import notice_object
from gateway.errors import BackendError, GatewayError, ServerShutdown
from gateway.server.call import CLIENT_GONE, SHOWN, Call
from gateway.server.chat import ChatCompletions
from gateway.server.door import OPEN_PATHS, check_single, check_site
from gateway.server.log import LOGGER
from gateway.server.reply import Reply
from gateway.server.services import Services, shutdown
from gateway.server.watch import ClientGone
from gateway.types import Json

HOT_PATHS: Final = frozenset({"/v1/chat/completions", "/chat/completions"})


class Front:
    """Wraps the application. Everything but the health routes needs a key, whether the path exists or not."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._chat = ChatCompletions(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        call = Call(scope["method"], scope["path"], dict(scope["headers"]), self._services.feed, self._services.metrics)
        if self._services.tracing is not None and call.path in HOT_PATHS and call.method == "POST":
            call.trace = self._services.tracing.begin(call.headers)
        # Taken out, it does not refer to itself: nothing of a request has to wait for the collector.
        reply = Reply(scope["state"].pop("outlet"), call.id)
        status = 0
        try:
            await self._serve(scope, receive, call, reply)
        except ClientGone:
            call.code = "client_gone"
            status = CLIENT_GONE
            # Closing it politely would wait for a client that takes nothing.
            reply.connection.cut()
        except GatewayError as error:
            _report(call, error)
            # A backend says so only after the client's whole request has been read.
            if error.code == "request_too_large" and not isinstance(error, BackendError):
                await reply.refuse(error)
            else:
                await reply.fail(error, call.answer_headers())
        except Exception:  # noqa: BLE001 (the boundary: a bug must not end the connection without a word)
            call.code = "internal_error"
            LOGGER.exception("internal_error in %s %s", call.method, call.path, extra={"request_id": call.id})
            await reply.fail(GatewayError(f"The gateway failed; its log says why under {call.id}."))
        finally:
            call.conclude(status or reply.status)

    async def _serve(self, scope: Scope, receive: Receive, call: Call, reply: Reply) -> None:
        if len(call.headers) != len(scope["headers"]):
            check_single(scope["headers"])
        self._services.hosts.check(call.headers)
        check_site(call.headers)
        if call.path not in OPEN_PATHS:
            call.key = self._services.keys.check(call.headers)
        if call.path in HOT_PATHS and call.method == "POST":
            if not self._services.ready:
                raise shutdown()
            with self._services.admission.admit(call.key):
                await self._chat(call, reply)
        else:
            await self._app({**scope, "key": call.key, "intake": reply.intake}, receive, reply.forward)


def _report(call: Call, error: GatewayError) -> None:
    """What the operator must know: one WARNING for a backend's failure, ERROR where only the operator can help."""
    call.code = error.code or "-"
    call.note(error.notices)
    if call.explain:
        told: list[Json] = [notice_object(notice) for notice in (*call.notices, *error.notices)]
        error.extra = {**error.extra, "diagnostics": told}
    if isinstance(error, BackendError | ServerShutdown):
        call.blame(error)
        level = LOGGER.error if error.code == "upstream_auth_error" else LOGGER.warning
        level(
            "upstream_failure request_id=%s backend=%s model=%s phase=%s code=%s upstream_status=%s attempt=%d ms=%s "
            "cause=%s",
            call.id,
            call.backend,
            call.model[:SHOWN],
            call.phase,
            call.code,
            call.backend_status or "-",
            call.attempt,
            call.ms,
            type(error.__cause__).__name__ if error.__cause__ else "-",
            extra={"request_id": call.id},
        )
