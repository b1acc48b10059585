"""Serves the routes at which a model answers, in every dialect: decodes the request, runs its Exchange with the
backend, and sends the response."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import monotonic
from typing import Final, TypeAlias

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.backend_status import NO_RETRY, redact_error
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, BackendTimeout
from gateway.core.events import Event, Finish
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_view, prompt_size
from gateway.dialect import AskedCompaction, ClientRequest, Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.dialects.stateful import StatefulDialect
from gateway.exchange import COMPRESSED, Exchange
from gateway.history.prepare import Substitution
from gateway.server.access.request_checks import check_media_type
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.relay import relay
from gateway.server.api.responders import Responder, StateResponder, StoredAnswer, StreamResponder, WholeResponder
from gateway.server.http.read_body import BODY_S, read_body
from gateway.server.state.answer_store import AnswerStore, with_stored
from gateway.server.telemetry.debug_log import log_request
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.telemetry.tracing.traceparent import traceparent_header
from gateway.server.upstream.backend_response import BackendResponse
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
from gateway.settings import ModelSettings

# Reading and preparing less than this takes some milliseconds, unless it is made of many small values: of those each
# takes up to twelve microseconds.
LARGE: Final = 128 * 1024
SOME: Final = 16 * 1024
MANY: Final = 4000
# What a compaction takes beside the answer of the model that writes it.
MAKING_S: Final = 30.0


# Answers a request that no backend is sent as it is.
Alone: TypeAlias = Callable[
    [RequestContext, ClientResponse, Deadlines, Dialect, ClientRequest], Coroutine[None, None, None]
]


class GenerateEndpoint:
    """The hot routes."""

    def __init__(self, gateway_state: GatewayState) -> None:
        self._state = gateway_state

    async def __call__(
        self, context: RequestContext, response: ClientResponse, dialect: Dialect, head: RequestHead
    ) -> None:
        """Serves one request. Raises GatewayError, also after the response has begun, and ClientDisconnected."""
        check_media_type(context.headers)
        deadlines = self._state.scheduler.deadlines()

        def disconnect() -> None:
            # A finished response has reached its client.
            if not response.ended:
                deadlines.interrupt(ClientDisconnected())

        connection = response.connection
        try:
            with deadlines:
                began = monotonic()
                deadlines.expect(began + BODY_S, body_timeout)
                body = await read_body(response.request_body, context.headers, self._state.max_body)
                context.waited = monotonic() - began
                for observe in context.observers.body:
                    observe(context, body)
                connection.on_lost = disconnect
                await self._serve(context, body, deadlines, response, dialect, head)
        except BackendTimeout as error:
            # The backend may still work on the request: a second one would cost as much again.
            if error is deadlines.reason and context.is_sent:
                error.headers = NO_RETRY
            raise
        finally:
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
    ) -> None:
        # What is large is read and prepared in a thread, because streams are being served meanwhile.
        size = len(body)
        large = size >= LARGE or (size >= SOME and body.count(b",") >= MANY)
        stateful = self._state.dialects.extensions[dialect.name].stored
        answers = None if stateful is None else self._state.answers.of(context)
        if stateful is not None and answers is not None:
            request = await _decoded_with_stored(stateful, body, head, answers, large=large)
        else:
            request = await asyncio.to_thread(_decoded, dialect, body, head) if large else _decoded(dialect, body, head)
        conversation = request.conversation
        context.model = conversation.model
        model = self._state.backends.listed_name(conversation.model)
        route, backend = self._state.backends.route(model)
        self._state.admission.check_model(context.key, model)
        context.backend = backend.name
        for observe in context.observers.route:
            observe(context, route, backend)
        told: list[Notice] = []
        before: Sequence[Event] = ()
        if request.compacted or request.compacts is not None or not request.generates:
            alone = await self._alone(request, route, backend)
            if alone is not None:
                await alone(context, response, deadlines, dialect, request)
                return
            conversation, told, before = await self._compacted(context, dialect, request, route, backend)
        if (sent := route.name or model) != conversation.model:
            conversation = msgspec.structs.replace(conversation, model=sent)
        conversation = backend.with_request_id(conversation)
        features = self._state.features
        # A request that refers to stored answers says more than its body.
        said = size if features is None or answers is None else max(size, prompt_size(conversation))
        state = None if features is None else features.begin(context, route, backend, conversation, said)
        if state is not None:
            conversation = await state.recall(conversation)
            told += state.notices
        summary = None if state is None else state.summary
        if large:
            exchange = await asyncio.to_thread(_prepared, backend, conversation, route, summary)
        else:
            exchange = Exchange(
                backend.adapter, conversation, route.policy, summary, backend.state_label, route.context_length
            )
        exchange.notices[:0] = told
        keeps: StoredAnswer | None = None
        if request.to_store is not None:
            store = self._state.answers.for_answer(answers, route.responses, exchange.notices)
            keeps = None if store is None or stateful is None else StoredAnswer(stateful, store)
        context.notices = exchange.notices
        context.note(exchange.notices)
        if self._state.settings.log.bodies:
            log_request(context, backend, exchange, body, [place.read(head) for place in dialect.key_places])
        else:
            log_request(context, backend, exchange, None)
        kind = StreamResponder if conversation.stream else WholeResponder
        with (
            backend.concurrency,
            kind(context, response, deadlines, dialect, request, self._state.settings.server, keeps) as writer,
        ):
            try:
                responder = writer if state is None else StateResponder(writer, state)
                await self._exchange(context, backend, exchange, deadlines, responder, before)
            except BackendError as error:
                if state is not None:
                    state.refuse(error)
                self._complete(error, context, backend, exchange.request)
                raise

    def _complete(
        self, error: BackendError, context: RequestContext, backend: Backend, request: BackendRequest
    ) -> None:
        """Completes an error of a backend by what the gateway knows, and takes the secrets out of it."""
        check_lack(error)
        # After a reload, this backend may no longer be part of the gateway state.
        redact_error(error, backend.redact)
        redact_error(error, self._state.redact)
        if error.code == "upstream_auth_error":
            context.credential = backend.settings.credential_variable
        elif error.code == "upstream_unknown_url":
            context.unknown_url = self._state.redact(backend.redact(str(backend.url(request.path))))

    async def _alone(self, request: ClientRequest, route: ModelSettings, backend: Backend) -> Alone | None:
        """Returns what answers a request that its backend is not sent; None: it is."""
        if not request.generates:
            return self._answer_alone
        asked = request.compacts
        if asked is None or not asked.alone:
            return None
        return self._compact if await _is_made_here(asked, request, route, backend) else None

    async def _compacted(
        self, context: RequestContext, dialect: Dialect, request: ClientRequest, route: ModelSettings, backend: Backend
    ) -> tuple[Conversation, list[Notice], Sequence[Event]]:
        """Returns the conversation as it goes on: with the compactions in it opened, and with one of its own in its
        place where the client asks for that before the answer; the notices, and the events of that one."""
        asked, conversation = request.compacts, request.conversation
        compacting = self._state.dialects.extensions[dialect.name].compacting
        if asked is not None and compacting is not None and await _is_made_here(asked, request, route, backend):
            model = self._state.backends.listed_name(conversation.model)
            compaction = await self._state.compact(context, model, conversation)
            made = compacting.compaction_events(request, compaction.sealed, compaction.summary.text)
            return compaction.conversation, [*compaction.notices], made
        opened, told = await self._state.opened(context.key, conversation)
        return opened, told, ()

    async def _compact(
        self,
        context: RequestContext,
        response: ClientResponse,
        deadlines: Deadlines,
        dialect: Dialect,
        request: ClientRequest,
    ) -> None:
        """Answers a request for a compaction of its history, which its backend does not make itself."""
        compacting = self._state.dialects.extensions[dialect.name].compacting
        assert compacting is not None  # only such a dialect's requests ask for one
        kind = StreamResponder if request.conversation.stream else WholeResponder
        with kind(context, response, deadlines, dialect, request, self._state.settings.server) as writer:
            model = self._state.backends.listed_name(request.conversation.model)
            route, _ = self._state.backends.route(model)
            due = monotonic() + route.compress.deadline_s + MAKING_S
            deadlines.total_due = due
            deadlines.expect(due, total_timeout)
            compaction = await self._state.compact(context, model, request.conversation)
            told = [*request.conversation.notices, *compaction.notices]
            context.note(told)
            made = compacting.compaction_events(request, compaction.sealed, compaction.summary.text)
            await writer.finish([*told, *made, Finish("stop"), compaction.usage])
            context.conclude(200)

    async def _answer_alone(
        self,
        context: RequestContext,
        response: ClientResponse,
        deadlines: Deadlines,
        dialect: Dialect,
        request: ClientRequest,
    ) -> None:
        """Answers a request that asks no model for anything."""
        context.notices = [*request.conversation.notices]
        context.note(context.notices)
        with WholeResponder(context, response, deadlines, dialect, request, self._state.settings.server) as writer:
            await writer.finish(())

    async def _exchange(
        self,
        context: RequestContext,
        backend: Backend,
        exchange: Exchange,
        deadlines: Deadlines,
        writer: Responder,
        before: Sequence[Event] = (),
    ) -> None:
        """Sends the request, and to the client the events of the answer, behind those that stand `before` it."""
        now = context.asked = monotonic()
        deadlines.total_due = now + backend.timeouts.total
        if exchange.conversation.stream:
            deadlines.expect(now + backend.timeouts.first_byte, first_byte_timeout)
        else:
            # The first byte of a response that does not stream may come only when that response is complete.
            deadlines.expect(deadlines.total_due, total_timeout)
        context.connect(backend, exchange)
        answer = await with_credential(
            backend.credential, lambda headers: self._send(context, backend, exchange.request, headers, deadlines)
        )
        context.waited += monotonic() - now
        for wrap in context.observers.answer:
            answer = wrap(context, answer)
        try:
            if answer.status != 200:
                exchange.on_response_head(answer.status, answer.headers, await answer.read_error())
            exchange.on_response_head(200, answer.headers)
            if answer.compressed:
                await writer.send((COMPRESSED,))
            if before:
                await writer.send(before)
            await relay(context, backend, exchange, answer, deadlines, writer)
            context.conclude(200)
            # The response is complete: a stop of the gateway can no longer interrupt it or count as its failure.
            self._state.scheduler.discard(deadlines)
            if not answer.ended:
                await answer.drain()
        finally:
            answer.close()

    def _send(
        self,
        context: RequestContext,
        backend: Backend,
        request: BackendRequest,
        credential: Mapping[str, str],
        deadlines: Deadlines,
    ) -> Coroutine[None, None, BackendResponse]:
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
            again=context.attempt == 0,
        )


async def _is_made_here(asked: AskedCompaction, request: ClientRequest, route: ModelSettings, backend: Backend) -> bool:
    """Returns whether the history is so long as the client says, and no backend of its own API compacts it itself."""
    capabilities = backend.adapter.capabilities
    passes = capabilities.passthrough == request.conversation.dialect
    if passes and route.policy.profile in capabilities.compacts:
        return False
    return not asked.above or await asyncio.to_thread(estimate_view, request.conversation) > asked.above


def _decoded(dialect: Dialect, body: bytes, head: RequestHead) -> ClientRequest:
    return dialect.decode(read_document(body), head)


async def _decoded_with_stored(
    dialect: StatefulDialect, body: bytes, head: RequestHead, answers: AnswerStore, *, large: bool
) -> ClientRequest:
    """Decodes a request with the stored answers that it refers to."""
    document = await asyncio.to_thread(read_document, body) if large else read_document(body)
    document = await with_stored(dialect, document, answers)
    if large or document.stored:
        return await asyncio.to_thread(dialect.decode, document, head)
    return dialect.decode(document, head)


def _prepared(
    backend: Backend, conversation: Conversation, route: ModelSettings, summary: Substitution | None
) -> Exchange:
    """The exchange for a long conversation, so far that nothing looks through all of it again."""
    exchange = Exchange(backend.adapter, conversation, route.policy, summary, backend.state_label, route.context_length)
    if exchange.uncounted:
        exchange.sample_prompt()
    return exchange
