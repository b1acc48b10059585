"""Keeps the latest requests of this worker in memory, within bounds: what the inspector shows and `record` saves.

Every chat request has a summary; the newest `keep` that have ended stay. The contents of a request are captured while
somebody watches (or always, or never); when all together exceed `keep_mb`, the oldest go first, and their summaries say
so.
"""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.recording.recording import Interaction
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.cost import cost_of
from gateway.server.inspect.entry import (
    ContentsState,
    EndedRequest,
    KnownRequest,
    LiveRequest,
    error_code,
    packed,
    summary_of,
    unpacked,
)
from gateway.server.inspect.kept_bytes import KeptBytes
from gateway.server.inspect.kept_contents import KeptContents
from gateway.server.inspect.requests import RequestContents
from gateway.server.inspect.summary import Contents, Summary
from gateway.server.inspect.watchers import Watchers
from gateway.server.telemetry.request_context import (
    CHAT,
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

    Every request passes here. While nobody watches, it costs the calls that tests/budget.json counts; what a viewer
    sees is made when it is asked for."""

    def __init__(self, settings: InspectorSettings) -> None:
        self.price_of: Callable[[str], Price | None] = lambda model: None
        self.worker = 1
        self.workers = 1
        self.on_end: list[Callable[[Interaction], None]] = []
        self._always = settings.contents == "always"
        self._watched = settings.contents == "watched"
        self._most = int(settings.request_mb * 2**20)
        # In the order of their beginning, and of their end.
        self._live: dict[RequestContext, LiveRequest] = {}
        self._ended: deque[bytes] = deque(maxlen=settings.keep)
        self._contents = KeptContents(settings.keep, int(settings.keep_mb * 2**20))
        self.watchers = Watchers(self._live, self._known, self._shown, self._number)
        self._seq = 0
        # The Unix time at which the monotonic clock began.
        self._epoch_s = time.time() - time.monotonic()

    # --- what a request tells

    def begin(self, context: RequestContext) -> None:
        if context.route != CHAT:
            return
        started = context.started
        seq = int((started + self._epoch_s) * 1e6) // self.workers * self.workers + self.worker - 1
        self._seq = seq = seq if seq > self._seq else self._seq + self.workers
        self._live[context] = live = LiveRequest(seq, context, started)
        watched = bool(self.watchers.queues) and self.watchers.begin(live)
        if self._always or self.on_end or (self._watched and watched):
            context.capture = Capture(context.id, context.method, KeptBytes(self._most))

    def notice(self, context: RequestContext, notice: Notice) -> None:
        live = self._live.get(context)
        if live is not None and notice.rule not in live.rules[:_MOST_RULES]:
            live.rules = (*live.rules, notice.rule)[:_MOST_RULES]
        if context.capture is not None:
            context.capture.note(notice)

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        if context in self._live:
            self._live[context].usage = usage

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        if context not in self._live:
            return
        live = self._live[context]
        del self._live[context]
        live.changed = context.started + context.seconds
        live.ended = packed(live, outcome)
        self._ended.append(live.ended)
        capture = context.capture
        if capture is not None:
            self._keep(live, capture, outcome)
        if self.watchers.queues:
            self.watchers.end(live)

    def _keep(self, live: LiveRequest, capture: Capture, outcome: Outcome) -> None:
        """Keeps the contents of a request that ends, and passes them to those who save them."""
        capture.end()
        self._contents.add(live.seq, capture)
        if self.on_end:
            code = error_code(outcome)
            interaction = capture.interaction(outcome.status, code, live.context.phase, live.tokens)
            for save in self.on_end:
                save(interaction)

    # --- what a viewer asks

    def _known(self) -> Iterator[KnownRequest]:
        """Yields all requests, newest first; of those with the same id, which a client may choose twice, the newest."""
        ended = map(unpacked, sorted(self._ended, reverse=True))
        ids: set[str] = set()
        live: Iterable[KnownRequest] = [*reversed(self._live.values())]
        for one in heapq.merge(live, ended, key=lambda known: known.seq, reverse=True):
            if one.id not in ids:
                ids.add(one.id)
                yield one

    def listed(self, before: int | None = None, limit: int = 200) -> list[Summary]:
        """Returns the summaries of the newest requests, newest first, at most so many; `before`: only those that began
        before the one of this `seq`."""
        return self.page(self._known(), before, limit)

    async def found(self, matches: Callable[[Summary], bool]) -> list[KnownRequest]:
        """Returns the requests that match, newest first. Others are served meanwhile."""
        found: list[KnownRequest] = []
        for number, known in enumerate(self._known(), 1):
            if matches(self._summary(known)):
                found.append(known)
            if number % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    def page(self, found: Iterable[KnownRequest], before: int | None, limit: int) -> list[Summary]:
        """Returns the summaries of these requests as `listed` does."""
        older = (known for known in found if before is None or known.seq < before)
        return [self._shown(known) for known in islice(older, limit)]

    @property
    def total(self) -> int:
        """How many requests are here."""
        return len(self._live) + len(self._ended)

    def capture_of(self, known: KnownRequest) -> Capture | None:
        """Returns the contents of a request, so far as they have come; None: they are not here."""
        return known.context.capture if isinstance(known, LiveRequest) else self._contents.get(known.seq)

    def previous(self, conversation: str, before: int) -> Summary | None:
        """Returns the newest request of a conversation with contents and a smaller `seq`, or None."""
        live = (one.seq for one in self._live.values() if self._state_of(one).conversation == conversation)
        earlier = {seq for seq in (*live, *self._contents.of_conversation(conversation)) if seq < before}
        if not earlier:
            return None  # so that the records of other requests are not read for the first one of a conversation
        return next((self._shown(known) for known in self._known() if known.seq in earlier), None)

    def summary(self, request_id: str) -> Summary | None:
        """Returns the summary of a request, or None for one that is not here."""
        known = self._find(request_id)
        return None if known is None else self._shown(known)

    def _find(self, request_id: str) -> KnownRequest | None:
        """Returns the newest request with this id."""
        written = msgspec.json.encode(request_id)
        ended = map(unpacked, sorted((one for one in self._ended if written in one), reverse=True))
        found: list[KnownRequest] = [live for live in self._live.values() if live.id == request_id]
        found += islice((one for one in ended if one.id == request_id), 1)
        return max(found, key=lambda known: known.seq, default=None)

    def contents(self, request_id: str) -> RequestContents | None:
        """Returns the contents of a request, so far as they have come. None: they are not here; its summary says
        why."""
        known = self._find(request_id)
        capture = None if known is None else self.capture_of(known)
        if known is None or capture is None:
            return None
        outcome, tokens = known.outcome, known.tokens
        phase = known.context.phase if isinstance(known, LiveRequest) else ""
        interaction = capture.interaction(outcome.status, error_code(outcome), phase, tokens)
        return RequestContents(interaction, capture.keys, None if tokens is None else tokens.cached)

    def clear(self) -> None:
        """Forgets all requests that have ended."""
        self._ended.clear()
        self._contents.clear()

    def _number(self, changed: float) -> int:
        """Returns the number of a change at this time."""
        return int((changed + self._epoch_s) * 1e6) // self.workers * self.workers + self.worker - 1

    def _shown(self, known: KnownRequest) -> Summary:
        summary = self._summary(known)
        cost = cost_of(known.tokens, self.price_of(summary.model))
        return summary if cost is None else msgspec.structs.replace(summary, cost=cost)

    def _summary(self, known: KnownRequest) -> Summary:
        return summary_of(known, self._state_of(known), self._epoch_s, self.worker)

    def _state_of(self, known: KnownRequest) -> ContentsState:
        if isinstance(known, EndedRequest):
            missing: Contents = "evicted" if known.captured else "never_kept"
            return self._contents.state_of(known.seq) or ContentsState(missing)
        capture = known.context.capture
        return ContentsState() if capture is None else ContentsState("kept", capture.size, capture.conversation)
