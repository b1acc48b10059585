"""Sends events to the client as a response: streamed as they come, or collected into one body.

The head of a stream is held until there is an event to show, so that an early fault still becomes an HTTP status; but
no longer than `first_event_gate_s`: then the stream opens with a keep-alive of its dialect, and others follow while the
backend is silent.
"""

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Protocol, TypeVar

from gateway.core.events import Event
from gateway.dialect import AnswerHead, ClientRequest, Dialect, StreamEncoder
from gateway.dialects.stateful import StatefulDialect, StoringEncoder
from gateway.server.api.client_response import ClientResponse
from gateway.server.log.request_id import unique
from gateway.server.state.answer_store import Answers
from gateway.server.state.request_state import RequestState
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.deadlines import ClientDisconnected, Deadlines
from gateway.settings import ServerSettings

# So many events are reported and encoded at once; other requests are served between them.
PART: Final = 1024
# An answer of more events is folded in a thread.
MANY: Final = 16 * 1024

T = TypeVar("T")


class Responder(Protocol):
    """Sends the events of one response. `opening`: the first events that can be shown are sent at once."""

    @property
    def opening(self) -> bool: ...

    async def send(self, events: Sequence[Event]) -> None:
        """Accepts events; more will follow."""
        ...

    async def finish(self, events: Sequence[Event]) -> None:
        """Accepts the last events."""
        ...

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        """Accepts the events that precede a fault in the same read: they are sent if the response has begun, or if they
        may begin it (`opens`)."""
        ...


class StoredAnswer(NamedTuple):
    """Where an answer is stored, and the dialect whose encoders say what is. `lasting`: it outlives the client's
    connection, which alone is called stored."""

    dialect: StatefulDialect
    answers: Answers
    lasting: bool = True


class _Response:
    """The parts that a response is made from. `answers`: where its answer is stored; None: it is not."""

    def __init__(
        self,
        context: RequestContext,
        response: ClientResponse,
        deadlines: Deadlines,
        dialect: Dialect,
        request: ClientRequest,
        settings: ServerSettings,
        stored: StoredAnswer | None = None,
    ) -> None:
        self._context = context
        self._response = response
        self._deadlines = deadlines
        self._dialect = dialect
        self._request = request
        self._settings = settings
        self._stored = stored

    @property
    def _head(self) -> AnswerHead:
        context, kept = self._context, self._stored
        # Whoever knows the id of a stored answer refers to it.
        made = unique() if kept is None else secrets.token_hex(12)
        stored = kept is not None and kept.lasting
        head = AnswerHead(
            made, _unix_time(), context.model, _unix_time, context.explain, context.id, stored, context.times
        )
        for wrap in context.observers.answer_head:
            head = wrap(context, head)
        return head


class WholeResponder(_Response):
    """Collects the events and responds once. Use as a context manager, like `StreamResponder`."""

    opening = False

    def __enter__(self) -> "WholeResponder":
        self._events: list[Event] = list(self._context.notices)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def wait(self, work: Awaitable[T]) -> T:
        """See `StreamResponder.wait`."""
        return await work

    async def send(self, events: Sequence[Event]) -> None:
        async for part in _parts(events):
            self._collect(part)

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        pass

    async def finish(self, events: Sequence[Event]) -> None:
        if len(events) > PART:
            await self.send(events[:-PART])
            events = events[-PART:]
        self._collect(events)
        self._deadlines.expect(time.monotonic() + self._settings.write_timeout_s, ClientDisconnected)
        self._deadlines.total_due = math.inf
        if self._stored is not None:
            body = await self._store(self._stored)
        elif len(self._events) > MANY:
            body = await asyncio.to_thread(self._dialect.encode_answer, self._request, self._head, self._events)
        else:
            body = self._dialect.encode_answer(self._request, self._head, self._events)
        await self._response.whole(200, body, self._context.answer_headers())

    async def _store(self, stored: StoredAnswer) -> bytes:
        """Returns the answer once it is stored."""
        encoder = stored.dialect.stream_encoder(self._request, self._head)
        if len(self._events) > MANY:
            await asyncio.to_thread(_feed, encoder, self._events)
        else:
            _feed(encoder, self._events)
        await stored.answers.record(encoder, self._context)
        return encoder.whole()

    def _collect(self, events: Sequence[Event]) -> None:
        self._context.record(events)
        self._events.extend(events)


class StreamResponder(_Response):
    """Sends the events of one read of the backend in one piece, very many in several. Use as a context manager around
    the exchange; what the exchange has to wait for comes before that (`wait`)."""

    opening = True
    _waited = False

    def __enter__(self) -> "StreamResponder":
        if not self._waited:
            self._begin()
        self._encoder.feed(self._context.notices)
        self._deadlines.on_quiet = self._break_silence
        return self

    def _begin(self) -> None:
        self._keep_alive: asyncio.Task[None] | None = None
        self._storing: StoringEncoder | None = None
        self._encoder: StreamEncoder
        if self._stored is None:
            self._encoder = self._dialect.stream_encoder(self._request, self._head)
        else:
            self._encoder = self._storing = self._stored.dialect.stream_encoder(self._request, self._head)
        self._deadlines.quiet_due = time.monotonic() + self._settings.first_event_gate_s
        self._context.open_stream()

    async def wait(self, work: Awaitable[T]) -> T:
        """Returns the result of work that comes before the exchange; the client gets keep-alives meanwhile."""
        self._waited = True
        self._begin()
        self._deadlines.on_quiet = self._break_silence
        try:
            result = await work
            if self._keep_alive is not None:
                await self._end_keep_alive(self._keep_alive)
        finally:
            self._end_waiting()
        return result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end_waiting()

    def _end_waiting(self) -> None:
        self._deadlines.on_quiet = None
        if self._keep_alive is not None:
            self._keep_alive.cancel()

    async def send(self, events: Sequence[Event]) -> None:
        if len(events) > PART:
            async for part in _parts(events):
                # The next read of the backend is as far away as the last part.
                self._deadlines.expect(time.monotonic() + self._settings.write_timeout_s, ClientDisconnected)
                await self.send(part)
            return
        self._context.record(events)
        if payload := self._encoder.feed(events):
            self.opening = False
            now = time.monotonic()
            self._deadlines.quiet_due = now + self._settings.sse_ping_s
            if self._keep_alive is None and self._response.status and not self._response.flow.write_paused:
                self._response.write(payload)
                return
            # From here the request waits for the client, not for the backend.
            self._deadlines.expect(now + self._settings.write_timeout_s, ClientDisconnected)
            if self._keep_alive is not None:
                await self._end_keep_alive(self._keep_alive)
            await self._send(payload)

    async def finish(self, events: Sequence[Event]) -> None:
        if len(events) > PART:
            await self.send(events[:-PART])
            events = events[-PART:]
        self._context.record(events)
        self._deadlines.on_quiet = None
        self._deadlines.total_due = math.inf
        self._deadlines.expect(time.monotonic() + self._settings.write_timeout_s, ClientDisconnected)
        if self._keep_alive is not None:
            await self._end_keep_alive(self._keep_alive)
        payload = self._encoder.feed(events)
        if self._stored is not None and self._storing is not None:
            # The client may continue the answer as soon as it has its end.
            await self._stored.answers.record(self._storing, self._context)
        # Not sooner: an encoder that is closed can no longer report a failure.
        payload += self._encoder.close()
        if not self._response.status:
            await self._response.open(self._context.answer_headers(), payload, self._encoder)
            payload = b""
        await self._response.end(payload)

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        if events and (opens or self._response.status):
            await self.send(events)

    async def _end_keep_alive(self, keep_alive: asyncio.Task[None]) -> None:
        """Waits until the last keep-alive is sent in full; no other one follows for now."""
        await keep_alive
        self._keep_alive = None

    async def _send(self, data: bytes) -> None:
        if self._response.flow.write_paused:
            await self._response.ready()
        if self._response.status:
            self._response.write(data)
        else:
            await self._response.open(self._context.answer_headers(), data, self._encoder)

    def _break_silence(self) -> None:
        """Sends a keep-alive from a task of its own: the request's task is waiting for the backend."""
        self._deadlines.quiet_due = time.monotonic() + self._settings.sse_ping_s
        if self._keep_alive is None or self._keep_alive.done():
            data = self._encoder.quiet()
            for observe in self._context.observers.keep_alive:
                observe(self._context, data)
            self._keep_alive = asyncio.create_task(self._send(data))


class StateResponder:
    """Shows the state of a request the events of its answer before another responder sends them."""

    def __init__(self, responder: Responder, state: RequestState) -> None:
        self._responder = responder
        self._state = state

    @property
    def opening(self) -> bool:
        return self._responder.opening

    async def send(self, events: Sequence[Event]) -> None:
        await self._responder.send(self._state.record(events))

    async def finish(self, events: Sequence[Event]) -> None:
        events = self._state.record(events)
        # Before the client has the end of the answer: its next request may come at once.
        notices = await self._state.conclude()
        await self._responder.finish([*notices, *events] if notices else events)

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        await self._responder.rescue(self._state.record(events), opens=opens)


class ObservedResponder:
    """Shows the observers of a request the events of its answer before another responder sends them."""

    def __init__(self, responder: Responder, context: RequestContext) -> None:
        self._responder = responder
        self._context = context
        self._begun = False

    @property
    def opening(self) -> bool:
        return self._responder.opening

    async def send(self, events: Sequence[Event]) -> None:
        self._show(events)
        await self._responder.send(events)

    async def finish(self, events: Sequence[Event]) -> None:
        self._show(events)
        await self._responder.finish(events)

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        if opens or self._begun:
            self._show(events)
        await self._responder.rescue(events, opens=opens)

    def _show(self, events: Sequence[Event]) -> None:
        self._begun = True
        for observe in self._context.observers.events:
            observe(self._context, events)


def _feed(encoder: StreamEncoder, events: Sequence[Event]) -> None:
    """Encodes the events of a whole answer; what is not sent is not kept."""
    for start in range(0, len(events), PART):
        encoder.feed(events[start : start + PART])


def _unix_time() -> int:
    return int(time.time())


async def _parts(events: Sequence[Event]) -> AsyncIterator[Sequence[Event]]:
    """Yields the events in pieces; other tasks run between them."""
    yield events[:PART]
    for at in range(PART, len(events), PART):
        await asyncio.sleep(0)
        yield events[at : at + PART]
