"""Serves the routes at which a model answers, in every dialect: decodes the request, runs its Exchange with the
backend, and sends the response."""

import asyncio
import logging
import math
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.backend_status import NO_RETRY, redact_error
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, BackendTimeout
from gateway.core.events import Finish, UsageReport
from gateway.core.notices import Notice
from gateway.core.tokens import prompt_size
from gateway.dialect import ClientRequest, Dialect, RequestHead
from gateway.dialects.document import Document, read_document
from gateway.dialects.stateful import StatefulDialect
from gateway.exchange import COMPRESSED, Exchange
from gateway.framing.json_text import number_of
from gateway.server.access.request_checks import REQUIRE, check_media_type
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.relay import relay
from gateway.server.api.responders import (
    ObservedResponder,
    Responder,
    StateResponder,
    StoredAnswer,
    StreamResponder,
    WholeResponder,
)
from gateway.server.api.served_request import Answer, Begun, ServedRequest
from gateway.server.http.read_body import BODY_S, read_body
from gateway.server.log.logger import LOGGER
from gateway.server.state.answer_store import Answers, with_stored
from gateway.server.state.prefixes import LEAST, RequestPrefix
from gateway.server.state.request_state import RequestState
from gateway.server.telemetry.debug_log import log_request
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.telemetry.tracing.traceparent import traceparent_header
from gateway.server.upstream.backend_response import ERROR_BODY_CAP, BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import with_credential
from gateway.server.upstream.deadlines import (
    ClientDisconnected,
    Deadlines,
    body_timeout,
    first_byte_timeout,
    timeout_header,
    total_timeout,
)
from gateway.server.upstream.fd_limits import check_lack

if TYPE_CHECKING:
    from gateway.server.api.answer_steering import AnswerSteering
    from gateway.server.api.required_words import RequiredWords
    from gateway.server.media.media import Media
    from gateway.server.state.connection_answers import ConnectionMemory

# Reading and preparing less than this takes some milliseconds, unless it is made of many small values: of those each
# takes up to twelve microseconds.
LARGE: Final = 128 * 1024
SOME: Final = 16 * 1024
MANY: Final = 4000
# The whole answer to a request that only prepares the next one.
_NOTHING: Final = (UsageReport(0, 0, 0), Finish("stop"))


class GenerateEndpoint:
    """The hot routes."""

    def __init__(self, gateway_state: GatewayState) -> None:
        self._state = gateway_state

    async def __call__(
        self,
        context: RequestContext,
        response: ClientResponse,
        dialect: Dialect,
        head: RequestHead,
        memory: "ConnectionMemory | None" = None,
        steering: "AnswerSteering | None" = None,
    ) -> None:
        """Serves one request; `memory` is that of a connection which remembers its answers, `steering` that of an
        answer which may be steered. Raises GatewayError, also after the response has begun, and ClientDisconnected."""
        check_media_type(context.headers)
        began = monotonic()
        deadlines = self._state.scheduler.deadlines(began + BODY_S, body_timeout)

        def disconnect() -> None:
            # A finished response has reached its client.
            if not response.ended:
                deadlines.interrupt(ClientDisconnected())

        connection = response.connection
        try:
            with deadlines:
                body = await read_body(response.request_body, context.headers, self._state.max_body)
                context.body, context.body_at = body, monotonic()
                context.waited = context.body_at - began
                for observe in context.observers.body:
                    observe(context, body)
                connection.on_lost = disconnect
                await self._serve(context, body, deadlines, response, dialect, head, memory, steering)
        except BackendTimeout as error:
            # The backend may still work on the request: a second one would cost as much again.
            if error is deadlines.reason and context.is_sent:
                error.headers = NO_RETRY
            raise
        finally:
            # It keeps the frames that it has passed, and those the deadlines: that would wait for the collector.
            deadlines.reason = None
            # The connection's next request may have begun already, with its own callback in place.
            if connection.on_lost is disconnect:
                connection.on_lost = None

    async def _serve(
        self,
        context: RequestContext,
        body: bytes,
        deadlines: Deadlines,
        response: ClientResponse,
        dialect: Dialect,
        head: RequestHead,
        memory: "ConnectionMemory | None",
        steering: "AnswerSteering | None",
    ) -> None:
        # What is large is read and prepared in a thread, because streams are being served meanwhile.
        size = len(body)
        large = size >= LARGE or (size >= SOME and number_of(b",", body) >= MANY)
        stateful = self._state.dialects.extensions[dialect.name].stored
        stored = None if stateful is None else self._state.answers.of(context)
        connected = None if memory is None else memory.over(stored)
        answers: Answers | None = stored if connected is None else connected
        prefix = self._state.prefixes.of(context, dialect, size) if size >= LEAST else None
        if stateful is not None and answers is not None:
            request = await _read_with_stored(
                stateful, body, head, answers, prefix, large=large, connected=memory is not None
            )
        elif large and (prefix is None or not prefix.is_known(body, LARGE)):
            request = await asyncio.to_thread(_read, dialect, body, head, prefix)
        else:
            request = _read(dialect, body, head, prefix)
        conversation = request.conversation
        context.model = conversation.model
        model = self._state.backends.listed_name(conversation.model)
        route, backend = self._state.backends.route(model)
        self._state.admission.check_model(context.key, model)
        if prefix is not None:
            prefix.keep()
        required: RequiredWords | None = None
        if route.require or self._state.admission.requires or REQUIRE in context.headers:
            # Loaded with the first request that may not lose something.
            from gateway.server.api.required_words import required_words

            required = required_words(context, self._state.admission.required(context.key), route.require)
        context.backend, context.routed = backend.name, (route, backend)
        for observe in context.observers.route:
            observe(context, route, backend)
        served = ServedRequest(
            context,
            response,
            deadlines,
            dialect,
            head,
            body,
            request,
            model,
            route,
            backend,
            large,
            stored,
            connected,
            steering,
            required,
        )
        if not request.generates:
            await self._answer_alone(served)
            return
        if required is not None:
            await required.check_request(self._state, served)
        answer: Answer = self._answer
        if route.candidates or route.longer is not None:
            # Loaded with the first model that has candidates.
            from gateway.server.api.candidates import Candidates

            answer = Candidates(self._state, self._answer, self._kept).answer
        if request.compacted or request.compacts is not None:
            # Loaded with the first compaction.
            from gateway.server.api.compacting import serve_compacting

            await serve_compacting(self._state, served, answer)
        else:
            await answer(served, conversation, (), None)

    async def _answer(
        self,
        served: ServedRequest,
        conversation: Conversation,
        told: Sequence[Notice] = (),
        begun: Begun | None = None,
    ) -> None:
        """Asks the backend for the answer to a conversation, and sends it. `told` is what was done before."""
        context, deadlines, route, backend = served.context, served.deadlines, served.route, served.backend
        if (sent := route.name or served.model) != conversation.model:
            conversation = msgspec.structs.replace(conversation, model=sent)
        conversation = backend.with_request_id(conversation)
        done = [*told]
        waited: StreamResponder | WholeResponder | None = None
        if (media := self._state.media) is not None:
            conversation, waited = await self._with_texts(media, served, conversation, begun, done)
        spending = self._state.spending
        charge = None if spending is None else spending.begin(context)
        conversation = conversation if charge is None else charge.counted(conversation, done)
        features = self._state.features
        size = len(served.body)
        # A request that refers to stored answers says more than its body.
        refers = served.answers is not None or served.connected is not None
        said = max(size, prompt_size(conversation)) if refers and features is not None else size
        state = None if features is None else features.begin(context, route, backend, conversation, said)
        if state is not None:
            conversation = await state.recall(conversation)
        exchange = await _planned(served, conversation, state)
        exchange.notices[:0] = done
        keeps = None if waited is not None else self._kept(served, exchange.notices)
        made = exchange.notices
        # What an observer has noticed of the request as it came; an answer that has begun has told it.
        context.notices = exchange.notices = [*context.notices, *made]
        if begun is None:
            context.note(exchange.notices)
        if served.required is not None:
            served.required.check(made)
        if charge is not None:
            await charge.begin_try(route.price, exchange.conversation, large=served.large)
        if LOGGER.isEnabledFor(logging.DEBUG):
            keys = [place.read(served.head) for place in served.dialect.key_places]
            log_request(context, backend, exchange, served.body if self._state.settings.log.bodies else None, keys)
        opening: AbstractContextManager[Responder]
        if begun is not None:
            opening = nullcontext(begun.writer)
        else:
            opening = waited or served.responder(self._state.settings.server, keeps)
        with backend.concurrency, opening as writer:
            if begun is not None:
                await writer.send([*made, *begun.events])
            try:
                responder = writer if served.required is None else served.required.responder(writer)
                responder = responder if state is None else StateResponder(responder, state)
                steering, forget = served.steering, self._state.scheduler.discard
                exchanging = self._exchange(context, backend, exchange, deadlines, responder, steering)
                await (exchanging if steering is None else steering.run(exchanging, context, writer, deadlines, forget))
            except BackendError as error:
                if state is not None:
                    state.refuse(error)
                complete_failure(self._state, error, context, backend, exchange.request.path)
                raise

    def _kept(self, served: ServedRequest, notices: list[Notice]) -> StoredAnswer | None:
        """Returns where the answer is stored, if its client asks for that; `notices` say where it cannot be. What the
        client does not want to be stored, or cannot be, its connection may remember."""
        if served.request.to_store is None:
            return None
        stateful = self._state.dialects.extensions[served.dialect.name].stored
        if stateful is None:
            return None
        connected = served.connected
        if served.request.lasting and connected is not None and connected.unstored is not None:
            notices.append(connected.unstored)
        elif served.request.lasting:
            store = self._state.answers.for_answer(served.answers, served.route.responses, notices)
            if store is not None:
                return StoredAnswer(stateful, store)
        return None if connected is None else StoredAnswer(stateful, connected, lasting=False)

    async def _with_texts(
        self, media: "Media", served: ServedRequest, conversation: Conversation, begun: Begun | None, done: list[Notice]
    ) -> tuple[Conversation, StreamResponder | WholeResponder | None]:
        """Returns the conversation with texts in the place of the pictures and PDFs that its model does not read, and
        what kept the client waiting meanwhile and sends the answer; None: nothing was read, or the answer has `begun`.
        `done` gets the notices. The time of the request begins here."""
        context, deadlines, backend = served.context, served.deadlines, served.backend
        large, tried = served.large, served.texts
        read = await media.begin(context, served.route, backend, conversation, large=large, tried=tried)
        if read is None:
            return conversation, None
        if begun is not None and served.required is not None:
            # Of another model than the client has named, nothing was planned with its pictures before.
            served.required.check((await read.known())[1])
        asked = monotonic()
        # A try with another model goes on in the time of the first one.
        if deadlines.total_due == math.inf:
            deadlines.total_due = asked + backend.timeouts.total
        deadlines.expect(deadlines.total_due, total_timeout)
        writer = None
        try:
            if begun is None:
                writer = served.responder(self._state.settings.server, self._kept(served, done))
                conversation, notices = await writer.wait(read.read())
            else:
                conversation, notices = await read.read()
        finally:
            context.waited += monotonic() - asked
        done += notices
        return conversation, writer

    async def _answer_alone(self, served: ServedRequest) -> None:
        """Answers a request that asks no model for anything."""
        context = served.context
        told = [*context.notices, *served.request.conversation.notices]
        keeps = self._kept(served, told)
        context.notices = told
        context.note(told)
        if keeps is None:
            parts = (context, served.response, served.deadlines, served.dialect, served.request)
            with WholeResponder(*parts, self._state.settings.server) as whole:
                await whole.finish(())
            return
        with served.responder(self._state.settings.server, keeps) as writer:
            await writer.finish(_NOTHING)

    async def _exchange(
        self,
        context: RequestContext,
        backend: Backend,
        exchange: Exchange,
        deadlines: Deadlines,
        writer: Responder,
        steering: "AnswerSteering | None",
    ) -> None:
        if context.observers.events:
            writer = ObservedResponder(writer, context)
        now = context.asked = monotonic()
        # What was read for the request has begun its time.
        if deadlines.total_due == math.inf:
            deadlines.total_due = now + backend.timeouts.total
        if exchange.conversation.stream:
            deadlines.expect(now + backend.timeouts.first_byte, first_byte_timeout)
        else:
            # The first byte of a response that does not stream may come only when that response is complete.
            deadlines.expect(deadlines.total_due, total_timeout)
        context.exchange = exchange
        context.connect(backend, exchange)
        while True:
            began, tried = monotonic(), context.attempt
            send = partial(self._send, context, backend, exchange.request, deadlines, tried)
            asked = with_credential(backend.credential, send)
            try:
                answer = await (asked if steering is None else steering.ask(asked, exchange))
            finally:
                head_at = monotonic()
                context.waited += head_at - began
            context.head_at = head_at
            context.answer = answer
            context.earlier, context.received = context.earlier + context.received, 0
            for wrap in context.observers.answer:
                answer = wrap(context, answer)
            try:
                if answer.status != 200:
                    error_body = context.error_body = await answer.read_error()
                    context.error_ends = answer.ended and len(error_body) < ERROR_BODY_CAP
                    exchange.on_response_head(answer.status, answer.headers, error_body)
                exchange.on_response_head(200, answer.headers)
                if answer.compressed:
                    await writer.send((COMPRESSED,))
                if steering is not None:
                    steering.watch(answer)
                await relay(context, backend, exchange, answer, deadlines, writer)
                if not exchange.continues:
                    context.conclude(200)
                    # The response is complete: a stop of the gateway can no longer interrupt it or count as its
                    # failure.
                    self._state.scheduler.discard(deadlines)
                if not answer.ended:
                    await answer.drain()
            finally:
                answer.close()
            if not exchange.continues:
                return
            exchange = await self._following(backend, exchange, deadlines, writer)

    async def _following(
        self, backend: Backend, exchange: Exchange, deadlines: Deadlines, writer: Responder
    ) -> Exchange:
        """Returns the exchange of the next round. All rounds together have `timeouts.total`."""
        following = await asyncio.to_thread(exchange.following)
        await writer.send(following.notices)
        if following.conversation.stream:
            deadlines.expect(monotonic() + backend.timeouts.first_byte, first_byte_timeout)
        else:
            deadlines.expect(deadlines.total_due, total_timeout)
        return following

    def _send(
        self,
        context: RequestContext,
        backend: Backend,
        request: BackendRequest,
        deadlines: Deadlines,
        tried: int,
        credential: Mapping[str, str],
    ) -> Coroutine[None, None, BackendResponse]:
        """Sends the request of a round. `tried` is the number of attempts before it."""
        head = backend.head(request, credential)
        more = traceparent_header(context.traceparent, head.names) if context.traceparent else ()
        if request.deadline is not None:
            more = (*more, timeout_header(request.deadline, deadlines.total_due - monotonic()))
        return self._state.transport.send(
            head,
            request.body,
            backend.timeouts.connect,
            more=more,
            ping=backend.timeouts.ping,
            on_try=context.try_backend,
            on_sent=context.await_head,
            on_status=context.receive_head,
            again=context.attempt == tried,
        )


async def _planned(served: ServedRequest, conversation: Conversation, state: RequestState | None) -> Exchange:
    """Returns the exchange of a request, with what its state has noticed. Raises InvalidRequest."""
    route, backend, summary = served.route, served.backend, None if state is None else state.summary
    plan = (backend.adapter, conversation, route.policy, summary, backend.state_label, route.context_length)
    exchange = await asyncio.to_thread(Exchange, *plan) if served.large else Exchange(*plan)
    if state is not None:
        exchange.notices[:0] = state.notices
    return exchange


def complete_failure(
    state: GatewayState, error: BackendError, context: RequestContext, backend: Backend, path: str
) -> None:
    """Completes an error of a backend, which was asked at this path, by what the gateway knows, and takes the secrets
    out of it."""
    check_lack(error)
    # After a reload, this backend may no longer be part of the gateway state.
    redact_error(error, backend.redact)
    redact_error(error, state.redact)
    if error.code == "upstream_auth_error":
        context.credential = backend.settings.credential_variable
    elif error.code == "upstream_unknown_url":
        context.unknown_url = state.redact(backend.redact(str(backend.url(path))))


def _read(dialect: Dialect, body: bytes, head: RequestHead, prefix: RequestPrefix | None) -> ClientRequest:
    if prefix is None:
        return dialect.decode(read_document(body), head)
    return prefix.settled(dialect.decode(prefix.document(body), head))


def _decoded(dialect: Dialect, document: Document, head: RequestHead, prefix: RequestPrefix | None) -> ClientRequest:
    request = dialect.decode(document, head)
    # The turns of a stored answer are in no body.
    return request if prefix is None or document.stored else prefix.settled(request)


async def _read_with_stored(
    dialect: StatefulDialect,
    body: bytes,
    head: RequestHead,
    answers: Answers,
    prefix: RequestPrefix | None,
    *,
    large: bool,
    connected: bool,
) -> ClientRequest:
    """Decodes a request with the stored answers that it refers to."""
    read = read_document if prefix is None else prefix.document
    document = await asyncio.to_thread(read, body) if large else read(body)
    if connected:
        document = msgspec.structs.replace(document, connected=True)
    document = await with_stored(dialect, document, answers)
    if large or document.stored:
        return await asyncio.to_thread(_decoded, dialect, document, head, prefix)
    return _decoded(dialect, document, head, prefix)
