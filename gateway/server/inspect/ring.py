"""Keeps the latest requests of this worker in memory, within bounds: what the inspector shows and `record` saves.

Every chat request has a summary; the newest `keep` stay. The contents of a request are captured while somebody watches
(or always, or never); when all together exceed `keep_mb`, the oldest go first, and their summaries say so.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Container, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.recording.recording import Interaction
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.cost import cached_tokens, cost_of
from gateway.server.inspect.entry import Entry, summary_of
from gateway.server.inspect.requests import Change, RequestContents
from gateway.server.inspect.summary import Summary
from gateway.server.telemetry.request_context import (
    CHAT,
    NO_ERROR,
    Outcome,
    RequestContext,
    RequestObserver,
)
from gateway.settings import InspectorSettings, Price

_MOST_RULES: Final = 32
# Watchers are told so often what has changed. Nobody reads more than so many changes at once, and so many each time;
# contents are kept of as many requests, and what is served does not wait for the rest (bench.inspector).
_TICK_S: Final = 0.2
_MOST_TOLD: Final = 500
_EACH_TICK: Final = 20
# A watcher that is slower by so many times misses changes.
_MOST_WAITING: Final = 10
# So many summaries are made before others have their turn.
_COUNTED_AT_ONCE: Final = 500


class RequestRing(RequestObserver):
    """The latest requests. `watchers` are those who want contents now; `price_of` returns the price of a model. The
    numbers of requests and of changes are microseconds, so that those of the `workers` of a run follow each other: each
    worker has numbers of its own.

    Every request passes here. While nobody watches, its beginning and its end cost one call each; what a viewer sees is
    made when it is asked for."""

    def __init__(self, settings: InspectorSettings) -> None:
        self.price_of: Callable[[str], Price | None] = lambda model: None
        self.settings = settings
        self.worker = 1
        self.workers = 1
        self.watchers: set[asyncio.Queue[Sequence[Change] | None]] = set()
        self.on_end: list[Callable[[Interaction], None]] = []
        # By id, in the order of their beginning; and in turn, so that the oldest one is found.
        self._entries: dict[str, Entry] = {}
        self._places: list[Entry | None] = [None] * settings.keep
        self._place = 0
        # The ended ones whose contents are here, by `seq`.
        self._captured: OrderedDict[int, Entry] = OrderedDict()
        self._always = settings.contents == "always"
        self._seq = 0
        # The Unix time at which the monotonic clock began.
        self._epoch_s = time.time() - time.monotonic()
        self._ticking: asyncio.Task[None] | None = None
        self._size = 0
        # How many contents were begun to be kept and how many changes were told lately; what watchers have still to be
        # told of, by `seq`; and how many changes each of them missed.
        self._begun_lately = 0
        self._told_lately = 0
        self._untold: dict[int, Entry] = {}
        self._missed: dict[asyncio.Queue[Sequence[Change] | None], int] = {}
        self._most = int(settings.request_mb * 2**20)
        self._most_of_all = int(settings.keep_mb * 2**20)

    # --- what a request tells

    def begin(self, context: RequestContext) -> None:
        if context.route != CHAT:
            return
        if self._always or self.on_end or (self.watchers and self._takes_contents()):
            context.capture = Capture(context.id, context.method, self._most)
        started = context.started
        seq = int((started + self._epoch_s) * 1e6) // self.workers * self.workers + self.worker - 1
        self._seq = seq = seq if seq > self._seq else self._seq + self.workers
        entry = Entry(seq, self.worker, context.id, context.dialect, started, started, context, context.capture)
        entries, place = self._entries, self._place
        self._place = (place + 1) % self.settings.keep
        oldest, self._places[place] = self._places[place], entry
        if oldest is not None and oldest.id in entries and entries[oldest.id] is oldest:
            del entries[oldest.id]
            if oldest.capture is not None:
                self._forget(oldest)
        if context.id in entries:
            # A client chooses the id, and may choose one twice: the newer request has it.
            self._drop(entries[context.id])
        entries[context.id] = entry
        if self.watchers:
            self._untold[seq] = entry

    def _takes_contents(self) -> bool:
        """Returns whether the contents of a request are kept for who watches, and counts it then."""
        if self.settings.contents != "watched" or self._begun_lately >= _MOST_TOLD:
            return False
        self._begun_lately += 1
        return True

    def notice(self, context: RequestContext, notice: Notice) -> None:
        entry = self._entries.get(context.id)
        if entry is not None and entry.context is context and notice.rule not in entry.rules[:_MOST_RULES]:
            entry.rules = (*entry.rules, notice.rule)[:_MOST_RULES]
        if context.capture is not None:
            context.capture.note(notice)

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        entries = self._entries
        if context.id in entries and (entry := entries[context.id]).context is context:
            entry.usage = usage
        if context.capture is not None:
            context.capture.use(usage.prompt_tokens, usage.completion_tokens)

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        capture = context.capture
        if capture is not None:
            capture.end()
            if self.on_end:
                code = "" if outcome.code == NO_ERROR else outcome.code
                interaction = capture.interaction(outcome.status, code, context.phase)
                for save in self.on_end:
                    save(interaction)
        entries = self._entries
        if context.id not in entries or (entry := entries[context.id]).context is not context:
            return
        entry.outcome = outcome
        entry.streamed = context.streamed
        entry.changed = context.started + context.seconds
        entry.context = None
        if capture is not None:
            self._size += capture.size
            self._captured[entry.seq] = entry
            self._make_room()
        if self.watchers:
            self._untold[entry.seq] = entry

    def _make_room(self) -> None:
        while self._size > self._most_of_all and self._captured:
            self._forget(next(iter(self._captured.values())))

    def _drop(self, entry: Entry) -> None:
        del self._entries[entry.id]
        self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        """Drops the contents of a request that has ended."""
        if entry.capture is not None and entry.outcome is not None:
            del self._captured[entry.seq]
            self._size -= entry.capture.size
            entry.capture = None
            entry.evicted = True

    # --- what a viewer asks

    def listed(
        self, matches: Callable[[Summary], bool] = lambda _: True, before: int | None = None, limit: int = 200
    ) -> list[Summary]:
        """Returns the summaries of the newest requests that match, newest first, at most so many; `before`: only those
        that began before the one of this `seq`."""
        older = (entry for entry in reversed(self._entries.values()) if before is None or entry.seq < before)
        matching = ((entry, summary) for entry in older if matches(summary := self._summary(entry)))
        return [self._priced(entry, summary) for entry, summary in islice(matching, limit)]

    async def count(self, matches: Callable[[Summary], bool]) -> int:
        """Returns how many requests match. Others are served meanwhile."""
        matching = 0
        for number, entry in enumerate([*self._entries.values()], 1):
            matching += matches(self._summary(entry))
            if number % _COUNTED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return matching

    def captured(self, matches: Callable[[Summary], bool]) -> list[tuple[int, Capture]]:
        """Returns the requests that match and whose contents are here, newest first, with their `seq`."""
        kept = ((entry, entry.capture) for entry in reversed(self._entries.values()) if entry.capture is not None)
        return [(entry.seq, capture) for entry, capture in kept if matches(self._summary(entry))]

    @property
    def total(self) -> int:
        """How many requests are here."""
        return len(self._entries)

    def previous(self, conversation: str, before: int) -> Summary | None:
        """Returns the newest request of a conversation with contents and a smaller `seq`, or None."""
        earlier = (entry for entry in reversed(self._entries.values()) if entry.seq < before)
        found = (entry for entry in earlier if entry.capture and entry.capture.conversation == conversation)
        return next((self._shown(entry) for entry in found), None)

    def summary(self, request_id: str) -> Summary | None:
        """Returns the summary of a request, or None for one that is not here."""
        entry = self._entries.get(request_id)
        return None if entry is None else self._shown(entry)

    def contents(self, request_id: str) -> RequestContents | None:
        """Returns the contents of a request, so far as they have come. None: they are not here; its summary says
        why."""
        entry = self._entries.get(request_id)
        if entry is None or entry.capture is None:
            return None
        shown, capture = self._summary(entry), entry.capture
        phase = "" if entry.context is None else entry.context.phase
        cached = None if entry.usage is None else cached_tokens(entry.usage)
        return RequestContents(capture.interaction(shown.status, shown.code, phase), capture.keys, cached)

    def clear(self) -> None:
        """Forgets all requests that have ended."""
        for entry in [*self._entries.values()]:
            if entry.context is None:
                self._drop(entry)

    # --- who watches

    async def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        """Yields the changes from now on, and first those after the one of this number that are still known."""
        queue: asyncio.Queue[Sequence[Change] | None] = asyncio.Queue()
        if after is not None:
            known = sorted(self._entries.values(), key=lambda entry: entry.changed)
            if changes := [
                self._change(entry, "begun", self._shown(entry)) for entry in known if self._number(entry) > after
            ]:
                queue.put_nowait(changes)
        self.watchers.add(queue)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        try:
            while (found := await queue.get()) is not None:
                yield found
        finally:
            self.watchers.discard(queue)
            self._missed.pop(queue, None)
            if not self.watchers and self._ticking is not None:
                self._ticking.cancel()
                self._ticking = None
                self._untold.clear()
                self._begun_lately = self._told_lately = 0

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell()

    def tell(self) -> None:
        """Tells the watchers of each request that has begun, changed or ended since the last time, once."""
        untold, self._untold = self._untold, {}
        room = _MOST_TOLD - self._told_lately
        changes = [self._change(entry, "begun", self._shown(entry)) for entry in islice(untold.values(), room)]
        missed = len(untold) - len(changes)
        changes += islice(self._changed_between(untold), room - len(changes))
        self._told_lately = max(0, self._told_lately + len(changes) - _EACH_TICK)
        self._begun_lately = max(0, self._begun_lately - _EACH_TICK)
        changes.sort(key=lambda change: change.number)
        if missed:
            changes.insert(0, Change("missed", self._number(next(iter(untold.values()))), missed=missed))
        if changes:
            self._tell(changes)

    def _changed_between(self, untold: Container[int]) -> Iterator[Change]:
        """Yields the requests that are served and have changed, but for those of these numbers. They are looked at
        here, so that a change costs the request itself nothing."""
        for entry in self._entries.values():
            if entry.context is not None and entry.seq not in untold:
                summary = self._shown(entry)
                if entry.told != _lasting(summary):
                    entry.changed = time.monotonic()
                    yield self._change(entry, "changed", summary)

    def _tell(self, changes: Sequence[Change]) -> None:
        for queue in self.watchers:
            lost = self._missed.pop(queue, 0)
            if queue.qsize() < _MOST_WAITING:
                first = (Change("missed", changes[0].number, missed=lost),) if lost else ()
                queue.put_nowait((*first, *changes))
            else:
                self._missed[queue] = lost + sum(change.missed or 1 for change in changes)

    def close(self) -> None:
        """Ends the stream of every watcher."""
        self.tell()
        for queue in self.watchers:
            queue.put_nowait(None)

    def _change(self, entry: Entry, kind: str, summary: Summary) -> Change:
        """Returns the change of a request: of this kind while it is served, else that it has ended."""
        entry.told = _lasting(summary)
        return Change(kind if summary.live else "ended", self._number(entry), summary)

    def _number(self, entry: Entry) -> int:
        """Returns the number of the latest change of a request."""
        return int((entry.changed + self._epoch_s) * 1e6) // self.workers * self.workers + self.worker - 1

    def _shown(self, entry: Entry) -> Summary:
        return self._priced(entry, self._summary(entry))

    def _summary(self, entry: Entry) -> Summary:
        return summary_of(entry, self._epoch_s)

    def _priced(self, entry: Entry, summary: Summary) -> Summary:
        cost = cost_of(entry.usage, self.price_of(summary.model))
        return summary if cost is None else msgspec.structs.replace(summary, cost=cost)


def _lasting(summary: Summary) -> Summary:
    # The time goes on by itself, and the size with every read.
    return msgspec.structs.replace(summary, ms=0, bytes=0)
