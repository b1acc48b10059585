"""Keeps the latest requests of this worker in memory, within bounds: what the inspector shows and `record` saves.

Every chat request has a summary; the newest `keep` stay. The contents of a request are captured while somebody watches
(or always, or never); when all together exceed `keep_mb`, the oldest go first, and their summaries say so.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

import msgspec

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.recording.recording import Interaction
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.cost import cached_tokens, cost_of
from gateway.server.inspect.entry import Entry, summary_of
from gateway.server.inspect.requests import RequestContents
from gateway.server.inspect.summary import Summary
from gateway.server.inspect.watchers import Watchers
from gateway.server.telemetry.request_context import (
    CHAT,
    NO_ERROR,
    Outcome,
    RequestContext,
    RequestObserver,
)
from gateway.settings import InspectorSettings, Price

_MOST_RULES: Final = 32
# So many summaries are made before others have their turn.
_READ_AT_ONCE: Final = 500


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
        self.on_end: list[Callable[[Interaction], None]] = []
        # By id, in the order of their beginning; and in turn, so that the oldest one is found.
        self._entries: dict[str, Entry] = {}
        self.watchers = Watchers(self._entries, self._shown, self._number)
        self._places: list[Entry | None] = [None] * settings.keep
        self._place = 0
        # The ended ones whose contents are here, by `seq`.
        self._captured: OrderedDict[int, Entry] = OrderedDict()
        self._always = settings.contents == "always"
        self._watched = settings.contents == "watched"
        self._seq = 0
        # The Unix time at which the monotonic clock began.
        self._epoch_s = time.time() - time.monotonic()
        self._size = 0
        self._most = int(settings.request_mb * 2**20)
        self._most_of_all = int(settings.keep_mb * 2**20)

    # --- what a request tells

    def begin(self, context: RequestContext) -> None:
        if context.route != CHAT:
            return
        watchers = self.watchers
        if self._always or self.on_end or (self._watched and watchers.queues and watchers.takes_contents()):
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
        if watchers.queues:
            watchers.begin(entry)

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
            entry.held = capture.size
            self._size += entry.held
            self._captured[entry.seq] = entry
            self._make_room()
        if self.watchers.queues:
            self.watchers.end(entry)

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
            self._size -= entry.held
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

    async def found(self, matches: Callable[[Summary], bool]) -> list[Entry]:
        """Returns the requests that match, newest first. Others are served meanwhile."""
        found: list[Entry] = []
        for number, entry in enumerate([*reversed(self._entries.values())], 1):
            if matches(self._summary(entry)):
                found.append(entry)
            if number % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    def page(self, found: Iterable[Entry], before: int | None, limit: int) -> list[Summary]:
        """Returns the summaries of the first of these requests, as `listed` does."""
        older = (entry for entry in found if before is None or entry.seq < before)
        return [self._shown(entry) for entry in islice(older, limit)]

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
