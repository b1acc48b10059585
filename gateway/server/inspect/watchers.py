"""Tells those who watch the requests of this worker what changes, within bounds.

Nobody reads hundreds of changes a second: beyond the bound they are counted as missed, so that what is served does not
wait for those who watch (bench.inspector).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from gateway.server.inspect.entry import Entry
from gateway.server.inspect.requests import Change
from gateway.server.inspect.summary import Summary

# Watchers are told so often what has changed: of at most so many changes at once, and so many each time. Contents are
# kept of as many requests.
_TICK_S: Final = 0.2
_MOST_TOLD: Final = 500
_EACH_TICK: Final = 10
# A watcher that is slower by so many times misses changes.
_MOST_WAITING: Final = 10

# The changes that a watcher has still to read; None: there will be no more.
Queue: TypeAlias = asyncio.Queue[Sequence[Change] | None]


class Watchers:
    """Everybody who watches, by the queue that each reads.

    `entries` are the requests in the order of their beginning, `shown` returns what is shown of one, and `number` that
    of its latest change."""

    def __init__(
        self, entries: Mapping[str, Entry], shown: Callable[[Entry], Summary], number: Callable[[Entry], int]
    ) -> None:
        self.queues: set[Queue] = set()
        self._entries = entries
        self._shown = shown
        self._number = number
        self._ticking: asyncio.Task[None] | None = None
        # What is to be told and what is served now, by `seq`; how many changes were told and how many contents begun to
        # be kept lately; and how many changes each watcher missed.
        self._untold: dict[int, Entry] = {}
        self._served: dict[int, Entry] = {}
        self._told_lately = 0
        self._begun_lately = 0
        self._missed: dict[Queue, int] = {}

    def takes_contents(self) -> bool:
        """Returns whether the contents of a request that begins now are kept for them, and counts it then."""
        if self._begun_lately >= _MOST_TOLD:
            return False
        self._begun_lately += 1
        return True

    def begin(self, entry: Entry) -> None:
        """Takes a request that has begun."""
        self._untold[entry.seq] = self._served[entry.seq] = entry

    def end(self, entry: Entry) -> None:
        """Takes a request that has ended."""
        self._served.pop(entry.seq, None)
        self._untold[entry.seq] = entry

    async def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        """Yields the changes from now on, and first those after the one of this number that are still known."""
        queue: Queue = asyncio.Queue()
        if after is not None:
            known = sorted(self._entries.values(), key=lambda entry: entry.changed)
            if changes := [self._change(entry, "begun") for entry in known if self._number(entry) > after]:
                queue.put_nowait(changes)
        if not self.queues:
            self._served = {entry.seq: entry for entry in self._entries.values() if entry.context is not None}
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
                self._untold.clear()
                self._served.clear()
                self._begun_lately = self._told_lately = 0

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell()

    def tell(self) -> None:
        """Tells of each request that has begun, changed or ended since the last time, once."""
        untold, self._untold = self._untold, {}
        room = _MOST_TOLD - self._told_lately
        changes = [self._change(entry, "begun") for entry in islice(untold.values(), room)]
        missed = len(untold) - len(changes)
        changes += islice(self._changed_between(untold), room - len(changes))
        self._told_lately = max(0, self._told_lately + len(changes) - _EACH_TICK)
        self._begun_lately = max(0, self._begun_lately - _EACH_TICK)
        changes.sort(key=lambda change: change.number)
        if missed:
            changes.insert(0, Change("missed", self._number(next(iter(untold.values()))), missed=missed))
        if changes:
            self._put(changes)

    def close(self) -> None:
        """Tells of what is left, and ends every watch."""
        self.tell()
        for queue in self.queues:
            queue.put_nowait(None)

    def _changed_between(self, untold: Container[int]) -> Iterator[Change]:
        """Yields the requests that are served and have changed, but for those of these numbers. They are looked at
        here, so that a change costs the request itself nothing."""
        for entry in [*self._served.values()]:
            if self._entries.get(entry.id) is not entry:
                del self._served[entry.seq]  # it gave way to newer ones
            elif entry.seq not in untold and entry.told != _lasting(self._shown(entry)):
                entry.changed = time.monotonic()
                yield self._change(entry, "changed")

    def _put(self, changes: Sequence[Change]) -> None:
        for queue in self.queues:
            lost = self._missed.pop(queue, 0)
            if queue.qsize() < _MOST_WAITING:
                first = (Change("missed", changes[0].number, missed=lost),) if lost else ()
                queue.put_nowait((*first, *changes))
            else:
                self._missed[queue] = lost + sum(change.missed or 1 for change in changes)

    def _change(self, entry: Entry, kind: str) -> Change:
        """Returns the change of a request: of this kind while it is served, else that it has ended."""
        summary = self._shown(entry)
        entry.told = _lasting(summary)
        return Change(kind if summary.live else "ended", self._number(entry), summary)


def _lasting(summary: Summary) -> Summary:
    # The time goes on by itself, and the size with every read.
    return msgspec.structs.replace(summary, ms=0, bytes=0)
