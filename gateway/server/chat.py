"""POST /v1/chat/completions: request bytes -> Exchange -> backend -> the answer, whole or streamed."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from time import monotonic
from typing import Final

import msgspec

from gateway.adapter import BackendRequest
from gateway.dialects.openai_chat.decode import decode
from gateway.errors import BackendError
from gateway.exchange import Exchange
from gateway.server.backends import Backend
from gateway.server.body import BODY_S, read_body
from gateway.server.call import Call
from gateway.server.debug import log_request
from gateway.server.descriptors import check_lack
from gateway.server.door import check_media_type
from gateway.server.reply import Reply
from gateway.server.services import Services
from gateway.server.transport import Answer, truncated
from gateway.server.watch import ClientGone, Watch, body_late, first_byte_late, idle_late
from gateway.server.writers import CompletionWriter, StreamWriter, Writer

# After the answer's logical end its framing may still be on the way; a moment saves the connection.
SETTLE_S: Final = 0.05
# Behind the finish only usage and a closing event may come.
REST_S: Final = 0.8
# Reading and preparing less than this takes about a millisecond.
LARGE: Final = 128 * 1024


class ChatCompletions:
    """The hot route."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, call: Call, reply: Reply) -> None:
        """Serve one request. Raises GatewayError, also after the answer has begun, and ClientGone."""
        check_media_type(call.headers)
        with self._services.sweeper.watch() as watch:
            began = monotonic()
            watch.expect(began + BODY_S, body_late)
            body = await read_body(reply.intake, call.headers, self._services.max_body)
            call.waited = monotonic() - began

            def leave() -> None:
                # A finished answer has reached whoever it was for.
                if not reply.ended:
                    watch.interrupt(ClientGone())

            reply.connection.on_lost = leave
            try:
                await self._serve(call, body, watch, reply)
            finally:
                # The connection's next request may have begun already, and wait for its own end.
                if reply.connection.on_lost is leave:
                    reply.connection.on_lost = None

    async def _serve(self, call: Call, body: bytes, watch: Watch, reply: Reply) -> None:
        # What is large is read and prepared in a thread, because streams are being served meanwhile.
        large = len(body) >= LARGE
        conversation = await asyncio.to_thread(decode, body) if large else decode(body)
        call.model = conversation.model
        route, backend = self._services.backends.route(conversation.model)
        self._services.admission.check_model(call.key, conversation.model)
        call.backend = backend.name
        if route.name is not None:
            conversation = msgspec.structs.replace(conversation, model=route.name)
        asked = (backend.adapter, conversation, route.policy)
        exchange = await asyncio.to_thread(Exchange, *asked) if large else Exchange(*asked)
        call.notices = exchange.notices
        call.note(exchange.notices)
        log_request(call, backend, exchange, body if self._services.settings.log.bodies else None)
        kind = StreamWriter if conversation.stream else CompletionWriter
        with backend.slots, kind(call, reply, watch, conversation, self._services.settings.server) as writer:
            try:
                await self._exchange(call, backend, exchange, watch, writer)
            except BackendError as error:
                check_lack(error)
                # After a reload this may be an entry that the services no longer know.
                redact(error, backend.redact)
                redact(error, self._services.redact)
                raise

    async def _exchange(self, call: Call, backend: Backend, exchange: Exchange, watch: Watch, writer: Writer) -> None:
        now = monotonic()
        watch.expect(now + backend.timeouts.first_byte, first_byte_late)
        watch.total_due = now + backend.timeouts.total
        call.phase = "connect"
        if call.trace is not None:
            call.trace.connect(backend, exchange)
        credential = backend.credential.ready
        if credential is None:
            credential = await backend.credential.headers()
        answer = await self._send(call, backend, exchange.request, credential)
        if answer.status == 401 and backend.credential.renewable:
            answer.close()
            # Once more, since after a 401 nothing has run.
            await backend.credential.renew(credential)
            answer = await self._send(call, backend, exchange.request, await backend.credential.headers())
        call.waited += monotonic() - now
        try:
            call.phase = "head"
            if answer.status != 200:
                call.backend_status = answer.status
                exchange.open(answer.status, answer.headers, await answer.read_error())
            exchange.open(200, answer.headers)
            await self._relay(call, backend, exchange, answer, watch, writer)
            call.conclude(200)
            # The answer is complete: a stop of the gateway can no longer spoil it, nor be blamed for it.
            self._services.sweeper.discard(watch)
            if not answer.ended:
                await answer.settle(SETTLE_S)
        finally:
            answer.close()

    async def _relay(
        self, call: Call, backend: Backend, exchange: Exchange, answer: Answer, watch: Watch, writer: Writer
    ) -> None:
        arrived = exchange.progress
        until: float | None = None
        while True:
            asked = monotonic()
            # Only progress counts: a backend that sends nothing but comments is stalled all the same.
            if exchange.progress != arrived:
                arrived = exchange.progress
                watch.expect(asked + backend.timeouts.idle, idle_late)
            data = await (answer.read() if until is None else _read_rest(answer, until))
            call.waited += monotonic() - asked
            try:
                events = exchange.feed(data) if data else []
                # What shows nothing before its end, as a whole answer does, is not read once more to hear of it.
                over = not data or (answer.ended and not events)
                if over:
                    events = exchange.close()
            except BackendError as error:
                await writer.rescue(error.take())
                raise
            if over or exchange.done:
                if not exchange.finished:
                    raise truncated()
                await writer.finish(events)
                return
            if exchange.finished and until is None:
                until = monotonic() + REST_S
            if events:
                call.begin()
                await writer.take(events)

    def _send(
        self, call: Call, backend: Backend, request: BackendRequest, credential: Mapping[str, str]
    ) -> Coroutine[None, None, Answer]:
        lines = backend.lines(request, credential)
        return self._services.transport.send(
            lines,
            request.body,
            backend.timeouts.connect,
            more=b"" if call.trace is None else call.trace.headers(lines.names),
            on_try=call.try_backend,
            again=call.attempt == 0,
        )


def redact(error: BackendError, blot: Callable[[str], str]) -> None:
    """Blot the secrets out of every word of an error that may be the backend's own."""
    error.message = blot(error.message)
    error.code = error.code and blot(error.code)
    error.param = error.param and blot(error.param)


async def _read_rest(answer: Answer, until: float) -> bytes:
    """The next bytes behind the finish; empty when they do not come soon. Nothing that goes wrong now can take back an
    answer that is complete."""
    try:
        async with asyncio.timeout(until - monotonic()):
            return await answer.read()
    except (TimeoutError, BackendError):
        return b""
