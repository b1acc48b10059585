"""Adds compression to requests: decides which of them take part, and what follows from a long history.

Nothing here is awaited by a client except `RequestSummary.recall`. After a response, `consider` looks at the history in
a task of its own: it counts the sighting of a boundary, and starts the job that the sightings allow. A job's own
request never comes here, so that jobs start no jobs.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gateway.core.conversation import Conversation, Turn
from gateway.diagnostics.explain_summary import compress_limits
from gateway.history.compress.estimate import Calibration, estimate_turn
from gateway.history.compress.native_compaction import asks_for_compaction
from gateway.history.compress.plan import CompressLimits, Cover, NoCover, plan_cover, view_tokens
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.state.request_store import RequestStore
from gateway.server.state.store import StoreUnavailable
from gateway.server.summaries import notices
from gateway.server.summaries.index import IndexEntry, SummaryIndex, newest, seen
from gateway.server.summaries.job import RoutedModel, SummaryTask
from gateway.server.summaries.jobs import JobLimits, SummaryJobs
from gateway.server.summaries.recall import Recalled
from gateway.server.summaries.request_summary import RequestSummary
from gateway.server.summaries.summary_store import change_index, keep
from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend, Backends
from gateway.settings import CompressSettings, KeyCompressSettings, ModelSettings, Settings

# The fewest bytes of a body for a token of its history, of any text: base64, with what JSON writes around it.
LEAST_BYTES_A_TOKEN: Final = 1.3
# A history of more turns is measured in a thread.
MANY_TURNS: Final = 100
# Clients may name models freely where a pattern routes them.
MOST_CALIBRATIONS: Final = 256


class Summaries:
    """The feature, in one worker."""

    def __init__(
        self,
        jobs: SummaryJobs,
        metrics: Metrics,
        reporter: notices.SummaryReporter,
    ) -> None:
        self.jobs = jobs
        self._metrics = metrics
        self._reporter = reporter
        self._calibrations: OrderedDict[tuple[str, str], Calibration] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    def use(self, settings: Settings, backends: Backends) -> None:
        """Applies other settings, from the next request on."""
        self._settings = settings
        self._backends = backends

    def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        store: RequestStore,
        size: int,
    ) -> RequestSummary | None:
        """Returns the part of a request whose body has `size` bytes; None where it cannot be long, or where its model,
        its key or the client itself switches compression off. `store` is what the request may use."""
        compress, window = route.compress, route.context_length
        if not compress.enabled or window is None or size < LEAST_BYTES_A_TOKEN * compress.trigger * window:
            return None
        if not self.allows(context.key) or asks_for_compaction(conversation):
            return None
        name = self._backends.listed_name(context.model)
        return RequestSummary(self, store, context.id, RoutedModel(name, route, backend), size)

    def allows(self, key: str) -> bool:
        """Returns whether histories of a client key may be summarised."""
        return self._key_settings(key).enabled

    def consider(self, request: RequestSummary) -> None:
        """Looks, after the response, whether the history of a request is worth a summary. Never waits."""
        if request.recalled is not None and not self._draining:
            task = asyncio.create_task(self._consider(request, request.recalled))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    @property
    def running(self) -> frozenset[asyncio.Task[None]]:
        """What follows from requests and is not done yet, the jobs among it."""
        return frozenset(self._tasks)

    def drain(self) -> None:
        """Ends all jobs, and begins no other one."""
        self._draining = True
        for task in self._tasks:
            task.cancel()

    def calibration(self, model: RoutedModel) -> Calibration:
        """Returns the ratio of reported to estimated tokens of a model."""
        return self._calibrations.get((model.backend.name, model.sent_name), Calibration())

    def limits(self, model: RoutedModel) -> CompressLimits:
        """Returns the limits of a model with compression."""
        return compress_limits(model.route, self.writer(model).route)

    def writer(self, model: RoutedModel) -> RoutedModel:
        """Returns the model that writes the summaries of this model's histories."""
        name = model.route.compress.model
        return model if name is None else RoutedModel(name, *self._backends.route(name))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOGGER.error("internal_error in a summary", exc_info=error)

    async def _consider(self, request: RequestSummary, recalled: Recalled) -> None:
        # A sighting that is lost costs another one.
        with suppress(StoreUnavailable):
            await self._look(request, recalled)

    async def _look(self, request: RequestSummary, recalled: Recalled) -> None:
        conversation, model = recalled.conversation, request.model
        applied = None if recalled.applied is None else recalled.applied.record
        if applied is not None:
            self._metrics.summarized_requests.inc(model.backend.name)
            saved = applied.cost.covered_tokens - applied.cost.summary_tokens
            self._metrics.summary_saved_tokens.inc(model.backend.name, by=saved)
            await keep(request.store.store, request.store.tenant, recalled.root, applied.digest)
        sizes = await _sizes(conversation.turns)
        calibration = self._calibrate(request, view_tokens(conversation, sizes, applied))
        limits = self.limits(model)

        def plan(turns: int | None = None) -> Cover | NoCover:
            """Plans a cover of at most so many turns."""
            allowed = [one for one in recalled.boundaries if turns is None or one.turns <= turns]
            return plan_cover(conversation, allowed, sizes, limits, calibration, applied)

        planned = await asyncio.to_thread(plan)
        if isinstance(planned, NoCover):
            if planned.reason == "futile":
                await self._report_futile(request, recalled, planned, limits)
            return
        entry = await self._sight(request, recalled, planned)
        if entry is None:
            return
        cover = planned if entry.turns == planned.boundary.turns else await asyncio.to_thread(plan, entry.turns)
        if isinstance(cover, Cover):
            await self._start(request, recalled, cover, entry)

    async def _sight(self, request: RequestSummary, recalled: Recalled, planned: Cover) -> IndexEntry | None:
        """Counts this request for the boundary that earlier ones carried, else for that of its own plan. Returns the
        entry; None where its attempts have ended."""
        digests = recalled.digests
        sighted: list[IndexEntry] = []

        def count(index: SummaryIndex) -> SummaryIndex:
            sighted.clear()
            if recalled.newer_summary(index):
                # The next request uses it, and is measured with it.
                return index
            known = newest(index, "candidate", digests)
            if known is not None and known.turns > recalled.covered:
                sighted.append(seen(known))
            else:
                boundary = planned.boundary
                there = index.find(boundary.digest)
                if there is not None and boundary.digest not in recalled.lost:
                    return index
                sighted.append(IndexEntry(boundary.turns, boundary.digest))
            return index.with_entry(sighted[0])

        index = await change_index(request.store.store, request.store.tenant, recalled.root, count)
        if index is None or not sighted:
            return None
        if sighted[0].sightings == 1:
            self._reporter.report(notices.candidate(sighted[0].turns), request.request_id)
        return sighted[0]

    async def _start(self, request: RequestSummary, recalled: Recalled, cover: Cover, entry: IndexEntry) -> None:
        compress = request.model.route.compress
        if entry.sightings < compress.sightings:
            return
        task = SummaryTask(
            request.store.store,
            request.store.tenant,
            recalled,
            cover,
            self.writer(request.model),
            request.request_id,
            compress.deadline_s,
            compress.json_schema,
        )
        limits = self.job_limits(task.tenant, compress)
        await self.jobs.run(task, entry.digest, limits)

    def job_limits(self, tenant: str, compress: CompressSettings) -> JobLimits:
        """Returns what bounds the jobs of a key."""
        own = self._key_settings(tenant).tokens_per_day
        # The number of jobs is one for all models of a worker.
        return JobLimits(compress.sightings, self._settings.compress.max_running, own or compress.tokens_per_day)

    async def _report_futile(
        self, request: RequestSummary, recalled: Recalled, planned: NoCover, limits: CompressLimits
    ) -> None:
        """Reports once for a conversation that no summary would help."""
        reported: list[bool] = []

        def mark(index: SummaryIndex) -> SummaryIndex:
            reported[:] = [index.futile]
            return index.with_futile()

        await change_index(request.store.store, request.store.tenant, recalled.root, mark)
        if reported == [False]:
            notice = notices.futile(planned.floor or planned.view, round(limits.trigger * limits.window))
            self._reporter.report(notice, request.request_id)

    def _calibrate(self, request: RequestSummary, estimated: int) -> Calibration:
        """Returns the model's calibration after the request. A refusal because of length says that the history has more
        tokens than the window."""
        model, reported = request.model, request.prompt_tokens
        place = (model.backend.name, model.sent_name)
        if request.refused:
            reported = max(model.route.context_length or 0, self.calibration(model).tokens(estimated))
        elif reported and estimated:
            self._metrics.estimate_ratio.observe(reported / estimated, model.backend.name)
        calibration = self._calibrations[place] = self.calibration(model).after(estimated, reported)
        self._calibrations.move_to_end(place)
        if len(self._calibrations) > MOST_CALIBRATIONS:
            self._calibrations.popitem(last=False)
        return calibration

    def _key_settings(self, key: str) -> KeyCompressSettings:
        keys = self._settings.keys
        entry = keys.get(key) or keys.get(DEFAULT_CLIENT)
        return KeyCompressSettings() if entry is None else entry.compress


async def _sizes(turns: Sequence[Turn]) -> list[int]:
    if len(turns) > MANY_TURNS:
        return await asyncio.to_thread(_measure, turns)
    return _measure(turns)


def _measure(turns: Sequence[Turn]) -> list[int]:
    return [estimate_turn(turn) for turn in turns]
