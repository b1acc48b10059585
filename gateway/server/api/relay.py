"""Relays the answer of a backend: reads its bytes, has them decoded, and sends the events on."""

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from typing import Final, ParamSpec

from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.exchange import Exchange
from gateway.server.api.responders import Responder
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.deadlines import Deadlines, idle_timeout

# Only usage and a closing event may follow the finish.
REST_S: Final = 0.8
# Of a first read with many events, this many bytes are decoded and sent before the rest.
FIRST: Final = 512
# Bytes that have brought no event yet are decoded in a thread from this size on; so is the prompt of a request looked
# through.
LARGE: Final = 128 * 1024

P = ParamSpec("P")


async def relay(
    context: RequestContext,
    backend: Backend,
    exchange: Exchange,
    answer: BackendResponse,
    deadlines: Deadlines,
    writer: Responder,
) -> None:
    """Reads the backend's answer to its end, and gives its events to the writer as they come; the writer's answer stays
    open while the exchange `continues`. Raises BackendError."""
    arrived = exchange.progress
    # Bytes that have brought no event yet: most likely the beginning of one large event. If they fail, all of a small
    # one are its error.
    gathered, unread = 0, b""
    until: float | None = None
    most = FIRST if writer.opening else 0
    read_at = monotonic()
    while True:
        try:
            data = await (answer.read(most) if until is None else _read_rest(answer, until))
        finally:
            context.waited += monotonic() - read_at
        try:
            size = len(data)
            gathered += size
            large = gathered >= LARGE
            if not data:
                events, ended = [], True
            elif large:
                # More may arrive while a thread decodes this.
                ended = answer.ended
                events = await _in_thread(deadlines, exchange.feed, data)
            else:
                events = exchange.feed(data)
                ended = not events and answer.ended
            # A response that yields no events before its end, as a whole one does, needs no further read to detect
            # the end.
            over = ended and not events
            if over:
                trailers = answer.trailers
                events = await _in_thread(deadlines, exchange.close, trailers) if large else exchange.close(trailers)
            over = over or (exchange.done and not answer.keeps)
            if over:
                # The tokens of a long prompt are estimated from a look through all of it.
                long = exchange.uncounted and len(exchange.request.body) >= LARGE
                events = await _in_thread(deadlines, exchange.end, events) if long else exchange.end(events)
        except BackendError as error:
            context.received -= len(unread)
            context.error_body, context.error_ends = unread + data, answer.ended
            await writer.rescue(error.take_events(), opens=error.opens)
            raise
        context.received += size
        if over:
            await (writer.send(events) if exchange.continues else writer.finish(events))
            return
        if exchange.finished and until is None:
            until = monotonic() + REST_S
        unread = b"" if events or large else unread + data
        if events:
            gathered = 0
            context.begin_response()
            await writer.send(events)
        if most:
            # While nothing can be shown yet, the pieces grow, so that there are few of them.
            most = 2 * most if writer.opening and most < LARGE else 0
        read_at = monotonic()
        # Only progress counts: a backend that sends nothing but comments is stalled all the same.
        if (progress := exchange.progress) != arrived:
            arrived = progress
            deadlines.expect(read_at + backend.timeouts.idle, idle_timeout)


async def _in_thread(
    deadlines: Deadlines, decode: Callable[P, list[Event]], *args: P.args, **kwargs: P.kwargs
) -> list[Event]:
    """Decodes while other requests are served. The backend is not waited for: only the total limit applies."""
    due, began = deadlines.due, monotonic()
    deadlines.due = math.inf
    try:
        return await asyncio.to_thread(decode, *args, **kwargs)
    finally:
        deadlines.due = due + monotonic() - began


async def _read_rest(answer: BackendResponse, until: float) -> bytes:
    """Returns the next bytes after the finish; empty when they do not come soon. A failure after the finish does not
    invalidate a complete response."""
    try:
        async with asyncio.timeout(until - monotonic()):
            return await answer.read()
    except (TimeoutError, BackendError):
        return b""
