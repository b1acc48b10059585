"""Sends the changes of the requests of this worker to those who watch them, within bounds.

Nobody reads hundreds of changes a second: beyond the bound they are counted as missed, so that what is served does not
wait for those who watch (bench.inspector).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from gateway.inspector.requests import Change
from gateway.inspector.summary import Summary
from gateway.server.inspect.known_requests import EndedRequest, KnownRequest, LiveRequest
from gateway.server.telemetry.request_context import RequestContext

# Changes are sent so often: of at most so many requests at once, and so many each time. The contents of those requests
# are captured.
_TICK_S: Final = 0.2
_MOST_SENT: Final = 500
_EACH_TICK: Final = 5
# A watcher that is slower by so many times misses changes.
_MOST_WAITING: Final = 10

# The changes that a watcher has still to read; None: there will be no more.
Queue: TypeAlias = asyncio.Queue[Sequence[Change] | None]


class Watchers:
    """Everybody who watches, by the queue that each reads.

    `live` are the requests that are served, in the order of their beginning, and `known` returns all, newest first;
    `shown` returns what is shown of one, and `number` that of a change at a time."""

    def __init__(
        self,
        live: Mapping[RequestContext, LiveRequest],
        known: Callable[[], Iterable[KnownRequest]],
        shown: Callable[[KnownRequest], Summary],
        number: Callable[[float], int],
    ) -> None:
        self.queues: set[Queue] = set()
        self._live = live
        self._known = known
        self._shown = shown
        self._number = number
        self._ticking: asyncio.Task[None] | None = None
        # The requests whose change is to be sent, by the time at which they began; how many requests were taken
        # lately; how many were not since the last time, and when the first of them began; and how many changes each
        # watcher missed.
        self._unsent: dict[float, LiveRequest] = {}
        self._taken_lately = 0
        self._not_taken = 0
        self._first_not_taken = 0.0
        # Since when somebody watches.
        self._since = 0.0
        self._missed: dict[Queue, int] = {}

    def begin(self, live: LiveRequest) -> bool:
        """Takes a request that has begun, and returns True; or False: there are too many, and it is counted as
        missed."""
        if self._taken_lately >= _MOST_SENT:
            if not self._not_taken:
                self._first_not_taken = live.changed
            self._not_taken += 1
            return False
        self._taken_lately += 1
        self._unsent[live.started] = live
        return True

    def end(self, live: LiveRequest) -> None:
        """Takes a request that has ended, if a change of it was or will be sent, or if watchers found it in the list:
        one that began before somebody watched."""
        if live.sent is not None or live.started in self._unsent or live.started <= self._since:
            self._unsent[live.started] = live

    async def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        """Yields the changes from now on, and first those after the one of this number that are still known: of many
        the latest."""
        queue: Queue = asyncio.Queue()
        if after is not None and (later := self._later(after)):
            queue.put_nowait(later)
        if not self.queues:
            self._since = time.monotonic()
        self.queues.add(queue)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        try:
            while (found := await queue.get()) is not None:
                yield found
        finally:
            self.queues.discard(queue)
            self._missed.pop(queue, None)
            if not self.queues and self._ticking is not None:
                self._ticking.cancel()
                self._ticking = None
                self._unsent.clear()
                self._taken_lately = self._not_taken = 0

    def _later(self, after: int) -> Sequence[Change]:
        known = sorted(self._known(), key=lambda one: one.changed)
        later = [one for one in known if self._number(one.changed) > after]
        missed, latest = later[:-_MOST_SENT], [self._change(one, "begun") for one in later[-_MOST_SENT:]]
        if not missed:
            return latest
        return [Change("missed", self._number(missed[-1].changed), missed=len(missed)), *latest]

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.send()

    def send(self) -> None:
        """Sends one change of each request that has begun, changed or ended since the last time."""
        unsent, self._unsent = self._unsent, {}
        missed, self._not_taken = self._not_taken, 0
        changes = [self._change(live, "begun") for live in unsent.values()]
        changed = [*islice(self._changed_between(unsent), max(0, _MOST_SENT - self._taken_lately))]
        self._taken_lately = max(0, self._taken_lately + len(changed) - _EACH_TICK)
        changes = sorted((*changes, *changed), key=lambda change: change.number)
        if missed:
            changes.insert(0, Change("missed", self._number(self._first_not_taken), missed=missed))
        if changes:
            self._put(changes)

    def close(self) -> None:
        """Sends the changes that are left, and ends every watch."""
        self.send()
        for queue in self.queues:
            queue.put_nowait(None)

    def _changed_between(self, unsent: Container[float]) -> Iterator[Change]:
        """Yields the requests that are served and have changed, but for those that began at these times. They are
        looked at here, so that a change costs the request itself nothing."""
        for live in self._live.values():
            if live.started not in unsent and live.sent != live.facts:
                live.changed = time.monotonic()
                yield self._change(live, "changed")

    def _put(self, changes: Sequence[Change]) -> None:
        for queue in self.queues:
            lost = self._missed.pop(queue, 0)
            if queue.qsize() < _MOST_WAITING:
                first = (Change("missed", changes[0].number, missed=lost),) if lost else ()
                queue.put_nowait((*first, *changes))
            else:
                self._missed[queue] = lost + sum(change.missed or 1 for change in changes)

    def _change(self, known: KnownRequest, kind: str) -> Change:
        """Returns the change of a request: of this kind while it is served, else that it has ended."""
        if isinstance(known, EndedRequest):
            return Change("ended", self._number(known.changed), self._shown(known))
        if known.ended is not None:
            return self._change(known.ended, kind)
        known.sent = known.facts
        return Change(kind, self._number(known.changed), self._shown(known))
