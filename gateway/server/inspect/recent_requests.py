"""Keeps the latest requests of this worker in memory, within bounds: what the inspector shows and `record` saves.

Every chat request has a summary; the newest `keep` that have ended stay. The contents of a request are captured while
somebody watches (or always, or never), and else, in part, behind one that has failed; when all together exceed
`keep_mb`, the oldest go first, and their summaries say so.
"""

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.diagnostics.prompt_cache.finding import Finding
from gateway.inspector.asked import Asked
from gateway.inspector.requests import ContentsReader, RequestContents
from gateway.inspector.summary import Contents, Summary, TokenCounts, with_price
from gateway.server.http.response_writer import Writer
from gateway.server.inspect.cache_doctor import CacheDoctor, Examination
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.capture_observer import CapturedWriter, CaptureObserver, SizeObserver
from gateway.server.inspect.captured_bytes import CapturedBytes
from gateway.server.inspect.contents import ContentsStore
from gateway.server.inspect.failed_request import failed_capture
from gateway.server.inspect.known_requests import (
    ContentsState,
    EndedRequest,
    EndedRequests,
    KnownRequest,
    LiveRequest,
    ended_request,
    error_code,
    summary_of,
)
from gateway.server.inspect.watchers import Watchers
from gateway.server.telemetry.request_context import (
    CHAT,
    NO_ERROR,
    PASSED,
    Outcome,
    RequestContext,
    RequestObserver,
)
from gateway.settings import InspectorSettings, Price

# The routes whose requests are shown.
_SHOWN: Final = (CHAT, PASSED)
_MOST_RULES: Final = 32
# So many notices of a request that may fail are kept.
_MOST_NOTICES: Final = 1000
# Requests begin so many seconds apart, for each worker, or are said to: their numbers then differ. Unix time in a float
# is exact to a quarter of a microsecond.
_APART_S: Final = 2e-6
# So many summaries are made before others have their turn.
_READ_AT_ONCE: Final = 500


class RecentRequests(RequestObserver):
    """The latest requests. `watchers` are those who want contents now; `price_of` returns the price of a model. The
    numbers of requests and of changes are microseconds, so that those of the `workers` of a run follow each other: each
    worker has numbers of its own.

    Every request passes here. While nobody watches, it costs the calls that tests/budget.json counts; what a viewer
    sees is made when it is asked for."""

    def __init__(self, settings: InspectorSettings) -> None:
        self.price_of: Callable[[str], Price | None] = lambda model: None
        # Whether the contents of a request may be kept although nobody watches, if it fails.
        self.may_keep: Callable[[RequestContext], bool] = lambda context: False
        # The gateway's own secrets, which no name and no words of a summary hold.
        self.secrets: Callable[[], Sequence[str]] = tuple
        # Examines the prompts of the requests that are captured, or of all; None: of none.
        self.caches: CacheDoctor | None = None
        self._all_caches = settings.caches == "always"
        self.worker = 1
        self.workers = 1
        self.on_end: list[Callable[[ContentsReader], None]] = []
        self._always = settings.contents == "always"
        self._watched = settings.contents == "watched"
        self._most = int(settings.request_mb * 2**20)
        # In the order of their beginning, and of their end.
        self._live: dict[RequestContext, LiveRequest] = {}
        self._ended = EndedRequests(settings.keep)
        self._findings: dict[float, Finding] = {}
        self._keep_most = settings.keep
        self._contents = ContentsStore(settings.keep, int(settings.keep_mb * 2**20))
        self.watchers = Watchers(self._live, self._known, self._shown, self._number)
        # No request begins before this time.
        self._next = 0.0
        # The Unix time at which the monotonic clock began.
        self._epoch_s = time.time() - time.monotonic()

    # --- the events of a request

    def begin(self, context: RequestContext) -> None:
        if context.route not in _SHOWN:
            return
        # A request is known by this time, which no other has; so its number is made only when somebody asks for it.
        started = context.started
        if started < self._next:
            started = self._next
        self._next = started + _APART_S * self.workers
        self._live[context] = live = LiveRequest(context, started, started)
        watched = self.watchers.queues and self.watchers.begin(live)
        if self._always or self.on_end or (watched and self._watched):
            live.capture = Capture(context.id, context.method, CapturedBytes(self._most))
        if self.caches is not None and (watched or self._all_caches or live.capture is not None):
            live.examination = Examination(self.caches)
        if live.capture is not None or live.examination is not None:
            self._observe(context, live)

    def _observe(self, context: RequestContext, live: LiveRequest) -> None:
        """Adds those who want to see more of this request."""
        if context.route == PASSED:
            # Its prompt is none, and of its bodies only type and size are kept.
            live.examination = None
            more: list[RequestObserver] = [] if live.capture is None else [SizeObserver(live.capture)]
        else:
            capture = None if live.capture is None else CaptureObserver(live.capture, self.secrets)
            more = [one for one in (capture, live.examination) if one is not None]
        context.observers = context.observers.joined(*more)

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        live = self._live.get(context)
        if live is None:
            return
        live.rules = tuple(dict.fromkeys([*live.rules, *[notice.rule for notice in notices]]))[:_MOST_RULES]
        if self._watched and live.capture is None:
            live.notices += notices[: _MOST_NOTICES - len(live.notices)]

    def error_writer(self, context: RequestContext, error: GatewayError, writer: Writer) -> Writer:
        live = self._live.get(context)
        if live is None or live.capture is not None:
            return writer
        live.capture = self._failed(live, error)
        return writer if live.capture is None else CapturedWriter(writer, live.capture)

    def _failed(self, live: LiveRequest, error: GatewayError | None = None) -> Capture | None:
        """Returns what is kept of a request that fails while nobody watches; None: nothing may be."""
        context = live.context
        # Who has no key could else drive out what others sent.
        if context.head is None or not self._watched or not self.may_keep(context):
            return None
        return failed_capture(context, context.head, live.notices, self._most, error, self.secrets())

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        if context not in self._live:
            return
        live = self._live[context]
        del self._live[context]
        live.changed = context.started + context.seconds
        if live.examination is not None:
            self._examine(live, live.examination)
        if outcome.code != NO_ERROR and live.capture is None:
            live.capture = self._failed(live)
        if context.route == PASSED and live.capture is not None:
            live.capture.skip_body(context.passed_bytes)
        live.ended = ended_request(live, outcome)
        self._ended.add(live.ended)
        if live.capture is not None:
            self._keep(live, live.capture, outcome)
        if self.watchers.queues:
            self.watchers.end(live)

    def _examine(self, live: LiveRequest, examination: Examination) -> None:
        """Keeps what a provider's cache could not serve of a request that ends."""
        found = examination.finding(live.context)
        if found is not None:
            self._findings[live.started] = found
            if len(self._findings) > self._keep_most:
                del self._findings[next(iter(self._findings))]

    def _keep(self, live: LiveRequest, capture: Capture, outcome: Outcome) -> None:
        """Keeps the contents of a request that ends, and passes them to those who save them."""
        capture.end(self.secrets())
        self._contents.add(live.started, capture)
        if self.on_end:
            read = partial(_contents, lambda: capture, outcome, live.tokens, live.context.phase)
            for save in self.on_end:
                save(read)

    # --- the queries of a viewer

    def _known(self) -> Iterator[KnownRequest]:
        """Yields all requests, newest first; of those with the same id, which a client may choose twice, the newest."""
        ids: set[str] = set()
        live: Iterable[KnownRequest] = [*reversed(self._live.values())]
        for one in heapq.merge(live, self._ended, key=lambda known: known.started, reverse=True):
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

    async def summaries(self, matches: Callable[[Summary], bool]) -> AsyncIterator[Summary]:
        """Yields the summaries of the requests that match, newest first. Others are served meanwhile."""
        for number, known in enumerate(self._known(), 1):
            if matches(summary := self._shown(known)):
                yield summary
            if number % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)

    def page(self, found: Iterable[KnownRequest], before: int | None, limit: int) -> list[Summary]:
        """Returns the summaries of these requests as `listed` does."""
        older = (known for known in found if before is None or self._number(known.started) < before)
        return [self._shown(known) for known in islice(older, limit)]

    @property
    def total(self) -> int:
        """How many requests are here."""
        return len(self._live) + len(self._ended)

    def capture_reader(self, known: KnownRequest) -> Callable[[], Capture] | None:
        """Returns a reader of the capture of a request so far as it has come, for any thread; None: it is not here."""
        if isinstance(known, EndedRequest):
            return self._contents.reader(known.started)
        if known.capture is None:
            return None
        capture = known.capture.copied()
        return lambda: capture

    def previous(self, conversation: str, before: int) -> Summary | None:
        """Returns the newest request of a conversation with contents and a smaller `seq`, or None."""
        live = (one.started for one in self._live.values() if self.state_of(one).conversation == conversation)
        known = (*live, *self._contents.of_conversation(conversation))
        earlier = {started for started in known if self._number(started) < before}
        if not earlier:
            return None  # so that the records of other requests are not read for the first one of a conversation
        return next((self._shown(known) for known in self._known() if known.started in earlier), None)

    def summary(self, request_id: str) -> Summary | None:
        """Returns the summary of a request, or None for one that is not here."""
        known = self._find(request_id)
        return None if known is None else self._shown(known)

    def _find(self, request_id: str) -> KnownRequest | None:
        """Returns the newest request with this id."""
        found: list[KnownRequest] = [live for live in self._live.values() if live.id == request_id]
        if (ended := self._ended.with_id(request_id)) is not None:
            found.append(ended)
        return max(found, key=lambda known: known.started, default=None)

    def reader(self, request_id: str) -> ContentsReader | None:
        """Returns a reader of the contents of a request so far as they have come. None: they are not here; its summary
        says why."""
        known = self._find(request_id)
        read = None if known is None else self.capture_reader(known)
        if known is None or read is None:
            return None
        phase = known.context.phase if isinstance(known, LiveRequest) else ""
        return partial(_contents, read, known.outcome, known.tokens, phase)

    def clear(self) -> None:
        """Removes all requests that have ended."""
        self._ended.clear()
        self._contents.clear()
        self._findings.clear()
        if self.caches is not None:
            self.caches.clear()

    def _number(self, at: float) -> int:
        """Returns the number of the event at this time."""
        return int((at + self._epoch_s) * 1e6) // self.workers * self.workers + self.worker - 1

    def _shown(self, known: KnownRequest) -> Summary:
        summary = self._summary(known)
        price = self.price_of(summary.model)
        return summary if price is None else with_price(summary, known.tokens, price)

    def _summary(self, known: KnownRequest) -> Summary:
        number, found = self._number(known.started), self._findings.get(known.started)
        return summary_of(known, number, self.state_of(known), self._epoch_s, self.worker, found, tuple(self.secrets()))

    def state_of(self, known: KnownRequest) -> ContentsState:
        """Returns the state of the contents of a request without reading them."""
        if isinstance(known, EndedRequest):
            missing: Contents = "evicted" if known.captured else "never_kept"
            return self._contents.state_of(known.started) or ContentsState(missing)
        capture = known.capture
        if capture is None:
            return ContentsState()
        return ContentsState("kept", capture.size, capture.conversation, capture.asked or Asked())


def _contents(read: Callable[[], Capture], outcome: Outcome, tokens: TokenCounts | None, phase: str) -> RequestContents:
    capture = read()
    interaction = capture.interaction(outcome.status, error_code(outcome), phase, tokens)
    return RequestContents(interaction, capture.secrets, None if tokens is None else tokens.cached)
