"""Ends a running answer early where its client steers it: at the next place at which nothing that was sent has to be
taken back.

Before the first call, that is anywhere. A call that the client has seen begin is finished first; its client then owes
the result, and the answer counts as complete. Nothing more is read from the backend, whose request is cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, get_args

from gateway.core.events import STEERED, Event, Finish, PassthroughFields, ToolCallEnd, ToolCallStart, UsageReport
from gateway.core.notices import Notice
from gateway.dialects.steering import AnswerStatus, Steer, SteeringDialect
from gateway.exchange import Exchange
from gateway.response.usage_estimate import answer_tokens, estimate_usage
from gateway.server.api.relay import LARGE
from gateway.server.api.responders import Responder
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.deadlines import Deadlines

ANSWER_STEERED: Final = Notice(
    "backend",
    "dropped",
    "ANSWER_STEERED",
    "the client steered the answer: the backend's request was cancelled here",
    level="info",
)
# The events that tell where an answer may end, and that its tokens are counted from here.
_TOLD: Final = frozenset({ToolCallStart, ToolCallEnd, PassthroughFields, Finish, UsageReport})
_ALL: Final = frozenset(get_args(Event))

# So many events are counted at once.
_MANY: Final = 4096


class Steered(Exception):
    """Raised in the place of more of a backend's answer."""


class AnswerSteering:
    """The steering of one answer of a WebSocket. `id` is that of the answer, empty until its first event is sent;
    `queued` are the events that steer it and that no successor has taken yet.

    `lane` and `body` are those of its request. `began_with` are steering events, whose messages the request has;
    `automatic`: it was made for them."""

    def __init__(
        self,
        dialect: SteeringDialect,
        lane: str | None,
        body: bytes,
        began_with: Sequence[Steer] = (),
        *,
        automatic: bool = False,
    ) -> None:
        self.id = ""
        self.lane = lane
        self.body = body
        self.began_with = began_with
        self.automatic = automatic
        self.queued: list[Steer] = []
        # The last event that was sent.
        self.last = b""
        # Whether its request allows that it is steered; None: nobody has asked. How it ended, once it has.
        self.steerable: bool | None = None
        self.status: AnswerStatus = "failed"
        self._dialect = dialect
        self._open: set[object] = set()
        self._called = False
        self._finished = False
        # Set while the task of the request waits for the head of an answer: nowhere else may it be cancelled.
        self._waiting = False
        # The answer, once its head is there and one of success.
        self._answer: BackendResponse | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cut = False
        self._exchange: Exchange | None = None
        # Whether the events are counted, which they are behind a report of tokens: those that are not counted yet, and
        # the tokens of those before them.
        self._counts = False
        self._context: RequestContext | None = None
        self._events: list[Event] = []
        self._tokens = 0

    def add(self, steer: Steer) -> None:
        """Queues an event that steers the answer, and ends the answer where that is possible."""
        self.queued.append(steer)
        if len(self.queued) > 1:
            return
        if self._answer is not None:
            self._answer.check(self._check_due)
        elif self._waiting and self._task is not None and self._is_due:
            self._cut = True
            self._task.cancel()

    @property
    def _is_due(self) -> bool:
        return bool(self.queued) and not self._finished and not self._open

    async def ask(self, work: Coroutine[Any, Any, BackendResponse], exchange: Exchange) -> BackendResponse:
        """Returns the head of the backend's answer in this exchange. Raises Steered where the answer ends instead."""
        self._exchange = exchange
        self._answer = None
        self._waiting = True
        try:
            if self._is_due:
                work.close()
                raise Steered
            return await work
        except asyncio.CancelledError:
            self._check_cut()
            raise
        finally:
            self._waiting = False

    def watch(self, answer: BackendResponse) -> None:
        """Has the reads of an answer, whose head is one of success, raise Steered where it ends instead."""
        self._answer = answer
        if self.queued:
            answer.check(self._check_due)

    def _check_due(self) -> None:
        """Raises Steered where the answer ends."""
        if self._is_due:
            raise Steered

    def _check_cut(self) -> None:
        """Raises Steered where the task was cancelled for it alone: whatever else has cancelled it ends the request."""
        if self._cut and self._task is not None and self._task.uncancel() == 0:
            raise Steered from None

    def follow(self, context: RequestContext) -> None:
        """Has the context of the request tell the events of the answer before they are sent: those that say where it
        may end, and what is read with them."""
        self._context = context
        context.watch(self._see, _TOLD)

    def _see(self, events: Sequence[Event]) -> None:
        if not self._counts and UsageReport in map(type, events):
            self._counts = True
            if self._context is not None:
                self._context.watch(self._see, _ALL)
        if self._counts:
            self._events += events
            if len(self._events) > _MANY:
                self._count()
        for event in events:
            # A read has many deltas.
            if type(event) not in _TOLD:
                continue
            match event:
                case ToolCallStart():
                    self._called = True
                    self._open.add(("call", event.index))
                case ToolCallEnd():
                    self._open.discard(("call", event.index))
                case PassthroughFields(scope="event"):
                    self._see_item(event)
                case Finish():
                    self._finished = True
                case _:
                    pass

    def _count(self) -> None:
        self._tokens += answer_tokens(self._events)
        self._events = []

    def _usage(self, exchange: Exchange, usage: UsageReport | None) -> Sequence[Event]:
        """Returns what is estimated of the tokens so far: some backends tell those of the answer at its end alone."""
        if exchange.uncounted or usage is None or usage.completion_tokens is not None:
            return exchange.estimate()
        self._count()
        return estimate_usage(usage.prompt_tokens or 0, self._tokens)

    def _see_item(self, event: PassthroughFields) -> None:
        self._called = self._called or bool(event.call)
        if (item := self._dialect.opened_item(event.fields)) is not None:
            (self._open.add if item[1] else self._open.discard)(item[0])

    async def run(
        self,
        exchanging: Coroutine[Any, Any, None],
        context: RequestContext,
        responder: Responder,
        deadlines: Deadlines,
        forget: Callable[[Deadlines], None],
    ) -> None:
        """Runs an exchange, and ends the answer where the client steers it; a stop of the gateway no longer concerns it
        then, so that its deadlines are to `forget`.

        Nobody keeps the state of such an answer but the client's history: the provider's is of a request that it was
        told to cancel."""
        self._task = asyncio.current_task()
        self.follow(context)
        try:
            await exchanging
        except Steered:
            assert self._exchange is not None  # only an exchange waits for its backend
            finish = Finish("tool_calls" if self._called else "stop", STEERED)
            self._finished = True
            # A long prompt is looked through for its tokens.
            counted = self._exchange, context.usage
            large = len(self._exchange.request.body) >= LARGE
            usage = await asyncio.to_thread(self._usage, *counted) if large else self._usage(*counted)
            events: list[Event] = [ANSWER_STEERED, finish, *usage]
            for observe in context.observers.events:
                observe(context, events)
            await responder.finish(events)
            context.conclude(200)
            forget(deadlines)
        finally:
            self._context = None
            context.watch()
