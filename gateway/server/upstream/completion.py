"""Asks a model for the gateway itself, with the operator's credential: no client is sent the events of the answer."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from gateway.core.answer import Answer, read_answer
from gateway.core.conversation import EMPTY, Conversation
from gateway.core.errors import BackendTimeout
from gateway.core.events import Event, UsageReport
from gateway.core.tokens import estimate_text, estimate_view
from gateway.exchange import Exchange
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import with_credential
from gateway.server.upstream.deadlines import timeout_header
from gateway.server.upstream.transport import Transport
from gateway.settings import ModelSettings, Price

# Takes over a response whose head has arrived.
Watch: TypeAlias = Callable[[BackendResponse], BackendResponse]


def _unwatched(response: BackendResponse) -> BackendResponse:
    return response


class RoutedModel(msgspec.Struct, frozen=True):
    """A model by the name that the settings know it by, with its entry and its backend."""

    name: str
    route: ModelSettings
    backend: Backend

    @property
    def sent_name(self) -> str:
        """The model's name at its backend."""
        return self.route.name or self.name


class CompletionRequest(msgspec.Struct, frozen=True):
    """A request of the gateway itself, ready to be sent, the tokens that it is expected to use at most, and the price
    of its model."""

    backend: Backend
    exchange: Exchange
    prompt_tokens: int
    output_tokens: int
    price: Price | None = None

    @property
    def tokens(self) -> int:
        """The expected tokens of prompt and answer."""
        return self.prompt_tokens + self.output_tokens


class Completion(msgspec.Struct, frozen=True):
    """A complete answer, its tokens (estimated where the backend reports none), and how long it took."""

    answer: Answer
    usage: UsageReport
    milliseconds: int


def prepare_completion(model: RoutedModel, conversation: Conversation, output_tokens: int) -> CompletionRequest:
    """Returns the request for the answer of a model, of at most so many tokens. Raises GatewayError where its backend
    cannot be sent it."""
    request = model.backend.with_request_id(conversation)
    exchange = Exchange(model.backend.adapter, request, model.route.policy, label=model.backend.state_label)
    return CompletionRequest(model.backend, exchange, estimate_view(request), output_tokens, model.route.price)


async def ask_model(
    transport: Transport, request: CompletionRequest, deadline_s: float, watch: Watch = _unwatched
) -> Completion:
    """Sends a request, once, and returns the answer. `watch`: see `complete`. Raises GatewayError."""
    began = time.monotonic()
    events = await complete(transport, request.backend, request.exchange, deadline_s, watch)
    answer = read_answer(events)
    usage = _usage(events, request.prompt_tokens, answer.text)
    return Completion(answer, usage, int((time.monotonic() - began) * 1000))


def _usage(events: Sequence[Event], prompt_estimate: int, text: str) -> UsageReport:
    """Returns the tokens that the backend reports, with the parts of the last report; estimates where it reports
    none."""
    reports = [event for event in events if isinstance(event, UsageReport) and not event.estimated]
    prompt = max((report.prompt_tokens or 0 for report in reports), default=0)
    completion = max((report.completion_tokens or 0 for report in reports), default=0)
    return UsageReport(
        prompt or prompt_estimate,
        completion or estimate_text(text),
        estimated=not (prompt and completion),
        extra=reports[-1].extra if reports else EMPTY,
    )


async def complete(
    transport: Transport, backend: Backend, exchange: Exchange, deadline_s: float, watch: Watch = _unwatched
) -> list[Event]:
    """Sends the request of an exchange, and returns the events of its complete response. It counts for the backend's
    concurrency limit. `watch` may replace the response by one that keeps what is read of it. Raises BackendError,
    BackendTimeout after `deadline_s` seconds; GatewayError where that limit is reached."""
    try:
        async with asyncio.timeout(deadline_s):
            with backend.concurrency:
                events = await _complete(transport, backend, exchange, deadline_s, watch)
                while exchange.continues:
                    exchange = exchange.following()
                    events += exchange.notices
                    events += await _complete(transport, backend, exchange, deadline_s, watch)
                return events
    except TimeoutError:
        raise BackendTimeout(f"The backend's response was not complete within {deadline_s:g} s.") from None


async def _complete(
    transport: Transport, backend: Backend, exchange: Exchange, deadline_s: float, watch: Watch
) -> list[Event]:
    answer = watch(
        await with_credential(
            backend.credential, lambda headers: _send(transport, backend, exchange, headers, deadline_s)
        )
    )
    try:
        body = b"" if answer.status == 200 else await answer.read_error()
        exchange.on_response_head(answer.status, answer.headers, body)
        events = await _read(answer, exchange)
        if not answer.ended:
            await answer.drain()
        return events
    finally:
        answer.close()


async def _read(answer: BackendResponse, exchange: Exchange) -> list[Event]:
    events: list[Event] = []
    while not exchange.done and (data := await answer.read()):
        events += exchange.feed(data)
    events += exchange.close(answer.trailers)
    exchange.check_complete(events)
    return events


async def _send(
    transport: Transport, backend: Backend, exchange: Exchange, credential: Mapping[str, str], deadline_s: float
) -> BackendResponse:
    request = exchange.request
    more = () if request.deadline is None else (timeout_header(request.deadline, deadline_s),)
    head, timeouts = backend.head(request, credential), backend.timeouts
    return await transport.send(head, request.body, timeouts.connect, more=more, ping=timeouts.ping)
