"""Serves the routes that are passed on: chooses the backend by the model, sends it the body as it comes, and the client
the answer as it comes."""

from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final

from gateway.core.backend_status import NO_RETRY
from gateway.core.errors import BackendError, BackendTimeout, GatewayError, InvalidRequest
from gateway.server.access.request_checks import check_origin
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.endpoint import complete_failure
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.passed.client_body import MODEL, ClientBody
from gateway.server.api.passed.routes import PassedRoute
from gateway.server.http.read_body import BODY_S
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import with_credential, with_credential_once
from gateway.server.upstream.deadlines import (
    ClientDisconnected,
    Deadlines,
    body_timeout,
    idle_timeout,
    total_timeout,
)
from gateway.server.upstream.http.headers import is_header_value
from gateway.server.upstream.upload import Upload

if TYPE_CHECKING:
    from gateway.server.state.passed_charge import PassedCharge

# Of the head of an answer, what its body cannot be read without. No cookie, and nothing about a connection, is passed.
_ANSWER_HEADERS: Final = ("content-disposition", "content-language", "retry-after")
# What a backend sends is shown by no browser as a page of the gateway, beside its inspector.
_GUARDS: Final = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"sandbox"))
_JSON: Final = "application/json"
_NO_CONTENT: Final = 204
_PLAIN: Final = "application/octet-stream"


class PassedEndpoint:
    """The routes that are passed on."""

    def __init__(self, gateway_state: GatewayState) -> None:
        self._state = gateway_state

    async def __call__(self, context: RequestContext, response: ClientResponse, route: PassedRoute) -> None:
        """Serves one request. Raises GatewayError, also after the response has begun, which then ends with the
        connection, and ClientDisconnected."""
        deadlines = self._state.scheduler.deadlines()

        def disconnect() -> None:
            # A finished response has reached its client.
            if not response.ended:
                deadlines.interrupt(ClientDisconnected())

        connection = response.connection
        try:
            with deadlines:
                connection.on_lost = disconnect
                await self._serve(context, deadlines, response, route)
        except GatewayError as error:
            if isinstance(error, BackendTimeout) and error is deadlines.reason and context.is_sent:
                # The backend may still work on the request: a second one would cost as much again.
                error.headers = NO_RETRY
            if response.status and not response.ended:
                connection.cut()
            raise
        finally:
            # It keeps the frames that it has passed, and those the deadlines: that would wait for the collector.
            deadlines.reason = None
            # The connection's next request may have begun already, with its own callback in place.
            if connection.on_lost is disconnect:
                connection.on_lost = None

    async def _serve(
        self, context: RequestContext, deadlines: Deadlines, response: ClientResponse, route: PassedRoute
    ) -> None:
        assert context.head is not None  # its key is accepted
        if context.head.query:
            raise InvalidRequest("A request that is passed on has no query: nothing behind a ? is sent.")
        began = monotonic()
        until = began + BODY_S
        deadlines.expect(until, body_timeout)
        body = ClientBody(response.request_body, context.headers, self._state.max_body)
        if body.media_type != _JSON:
            # A page can post it without asking the gateway first, as it must for JSON.
            check_origin(context.headers)
        charge = None
        try:
            name = await body.read_model()
            context.waited = monotonic() - began
            backend, named = self._choose(context, route, name)
            if name is not None and named is not None and named != name:
                body.name_model(named)
            spending = self._state.spending
            charge = None if spending is None else await spending.begin_passed(context, body.length or body.size)
            with backend.concurrency:
                try:
                    request = _Request(route, backend, body, until)
                    await self._pass(context, deadlines, response, request, charge)
                except BackendError as error:
                    complete_failure(self._state, error, context, backend, backend.settings.routes[route.name])
                    raise
        finally:
            context.passed_bytes = body.size
            if charge is not None:
                charge.settle()

    def _choose(self, context: RequestContext, route: PassedRoute, name: str | None) -> tuple[Backend, str | None]:
        """Returns the backend of the request, and the model's name there. Raises InvalidRequest."""
        state = self._state
        if name is None:
            chosen = None if route.default is None else state.backends.known(route.default)
            # A reload may have taken the backend, or its route, while the body arrived.
            if chosen is None or route.name not in chosen.settings.routes:
                raise InvalidRequest(
                    f"The request names no model, and no backend is set for {route.name} without one.",
                    code="missing_required_parameter",
                    param=MODEL,
                )
            state.admission.check_without_model(context.key)
            context.backend = chosen.name
            return chosen, None
        context.model = name
        model = state.backends.listed_name(name)
        entry, backend = state.backends.route(model)
        state.admission.check_model(context.key, model)
        context.backend, context.routed = backend.name, (entry, backend)
        for observe in context.observers.route:
            observe(context, entry, backend)
        if route.name not in backend.settings.routes:
            raise InvalidRequest(
                f"{route.name} is not served for the model {name[:200]!r}: its backend {backend.name!r} has no such "
                f"route. It is passed to {', '.join(route.backends)}.",
                code="unsupported_operation",
                param=MODEL,
            )
        return backend, entry.name or model

    async def _pass(
        self,
        context: RequestContext,
        deadlines: Deadlines,
        response: ClientResponse,
        request: "_Request",
        charge: "PassedCharge | None",
    ) -> None:
        backend = request.backend
        now = context.asked = monotonic()
        deadlines.total_due = now + backend.timeouts.total
        deadlines.expect(deadlines.total_due, total_timeout)
        upload = None if request.body.complete else Upload(request.sent(deadlines), request.body.length)
        answer = await self._send(context, request, upload)
        request.answered = True
        context.waited += monotonic() - now
        try:
            if not 200 <= answer.status < 300:
                deadlines.expect(monotonic() + backend.timeouts.idle, idle_timeout)
                raise backend.adapter.decode_error(answer.status, answer.headers, await answer.read_error())
            await self._relay(context, deadlines, response, answer, backend.timeouts.idle, charge)
            # The response is complete: a stop of the gateway can no longer interrupt it or count as its failure.
            self._state.scheduler.discard(deadlines)
            if not answer.ended:
                await answer.drain()
        except BackendError:
            if upload is not None:
                upload.check()
            raise
        finally:
            answer.close()

    async def _send(self, context: RequestContext, request: "_Request", upload: Upload | None) -> BackendResponse:
        backend, transport = request.backend, self._state.transport
        method, path = request.route.name.split(" ", 1)[0], backend.settings.routes[request.route.name]
        headers = _request_headers(context.headers, request.body.media_type)
        connect = backend.timeouts.connect
        on_try, on_sent, on_status = context.try_backend, context.await_head, context.receive_head

        async def send(credential: Mapping[str, str]) -> BackendResponse:
            head = backend.passed_head(method, path, headers, credential)
            if upload is not None:
                return await transport.send_upload(
                    head, upload, connect, on_try=on_try, on_sent=on_sent, on_status=on_status
                )
            again = not context.attempt
            return await transport.send(
                head, request.body.whole(), connect, on_try=on_try, on_sent=on_sent, on_status=on_status, again=again
            )

        # What was read of a body that is still arriving cannot be sent again.
        authorized = with_credential if upload is None else with_credential_once
        return await authorized(backend.credential, send)

    async def _relay(
        self,
        context: RequestContext,
        deadlines: Deadlines,
        response: ClientResponse,
        answer: BackendResponse,
        idle_s: float,
        charge: "PassedCharge | None",
    ) -> None:
        """Sends the client what the backend sends, as it comes."""
        headers = _answer_headers(answer)
        while True:
            read_at = monotonic()
            deadlines.expect(read_at + idle_s, idle_timeout)
            data = await answer.read()
            context.waited += monotonic() - read_at
            if not response.status:
                context.begin_response()
                await response.pass_on(answer.status, [*headers, *context.answer_headers()])
            if not data:
                await response.end()
                return
            deadlines.expect(deadlines.total_due, total_timeout)
            if charge is not None:
                charge.see(data)
            response.write(data)
            if response.flow.write_paused:
                await response.ready()


class _Request:
    """A request that is passed to its backend: its body must have arrived at the time `until`. `answered`: the head of
    the answer is here, so that the deadlines are those of its body, also where the request's still arrives."""

    def __init__(self, route: PassedRoute, backend: Backend, body: ClientBody, until: float) -> None:
        self.route = route
        self.backend = backend
        self.body = body
        self.answered = False
        self._until = until

    async def sent(self, deadlines: Deadlines) -> AsyncIterator[bytes]:
        """Yields the body, and sets the deadline of each wait for its client."""
        self._expect_body(deadlines)
        async for piece in self.body.pieces():
            self._expect_answer(deadlines)
            yield piece
            self._expect_body(deadlines)
        self._expect_answer(deadlines)

    def _expect_body(self, deadlines: Deadlines) -> None:
        if not self.answered:
            deadlines.expect(self._until, body_timeout)

    def _expect_answer(self, deadlines: Deadlines) -> None:
        if not self.answered:
            deadlines.expect(deadlines.total_due, total_timeout)


def _request_headers(sent: Mapping[bytes, bytes], media_type: str) -> dict[str, str]:
    """Returns the headers of the client that are passed on: what the body is, and what the answer may be."""
    headers = {"content-type": media_type} if media_type else {}
    accept = sent.get(b"accept", b"").decode("latin-1")
    return {**headers, "accept": accept} if accept and is_header_value(accept) else headers


def _answer_headers(answer: BackendResponse) -> list[tuple[bytes, bytes]]:
    named = []
    if answer.status != _NO_CONTENT:
        named.append(("content-type", answer.headers.get("content-type", _PLAIN)))
        length = answer.headers.get("content-length", "")
        if length.isdigit() and not answer.compressed:
            named.append(("content-length", length))
    named += [(name, answer.headers[name]) for name in _ANSWER_HEADERS if name in answer.headers]
    return [*((name.encode(), value.encode("latin-1")) for name, value in named), *_GUARDS]
