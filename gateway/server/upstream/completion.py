"""Gets a whole response from a backend for the gateway itself: no client waits for it, and none is sent its events."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.core.errors import BackendTimeout
from gateway.core.events import Event
from gateway.exchange import Exchange
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import with_credential
from gateway.server.upstream.deadlines import timeout_header
from gateway.server.upstream.transport import Transport

# Takes over a response whose head has arrived.
Watch: TypeAlias = Callable[[BackendResponse], BackendResponse]


def _unwatched(response: BackendResponse) -> BackendResponse:
    return response


async def complete(
    transport: Transport, backend: Backend, exchange: Exchange, deadline_s: float, watch: Watch = _unwatched
) -> list[Event]:
    """Sends the request of an exchange, and returns the events of its complete response. It counts for the backend's
    concurrency limit. `watch` may replace the response by one that keeps what is read of it. Raises BackendError,
    BackendTimeout after `deadline_s` seconds; GatewayError where that limit is reached."""
    try:
        async with asyncio.timeout(deadline_s):
            with backend.concurrency:
                return await _complete(transport, backend, exchange, deadline_s, watch)
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
