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
from gateway.core.tokens import Calibration, estimate_turn
from gateway.diagnostics.explain_summary import compress_limits
from gateway.memory.summaries.plan import CompressLimits, NoSummary, SummaryRange
from gateway.memory.summaries.substitution import asks_for_compaction
from gateway.memory.summaries.view import view_tokens
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.log.logger import LOGGER
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.stores import RequestStore
from gateway.server.summaries import notices
from gateway.server.summaries.index import IndexEntry, SummaryIndex
from gateway.server.summaries.job import SummaryTask
from gateway.server.summaries.jobs import JobLimits, SummaryJobs
from gateway.server.summaries.next_summary import NextSummary, next_summary
from gateway.server.summaries.notices import SummaryReporter
from gateway.server.summaries.recall import Recalled
from gateway.server.summaries.request_summary import LEAST_BYTES_A_TOKEN, RequestSummary
from gateway.server.summaries.summary_store import change_index, keep, read_index
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend, Backends
from gateway.server.upstream.completion import RoutedModel
from gateway.settings import CompressSettings, KeyCompressSettings, ModelSettings, Settings

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
        return RequestSummary(self, store, context.id, RoutedModel(name, route, backend), window, size)

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
        """The work that follows from requests and is not done yet, the jobs included."""
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
        sizes = await _sizes(conversation.turns, request.sizes)
        limits_sent = request.result_limits
        sent = view_tokens(conversation, sizes, applied) if limits_sent is None else limits_sent.sent
        calibration = self._calibrate(request, sent)
        limits = self.limits(model)

        index, _ = await read_index(request.store.store, request.store.tenant, recalled.root)
        following = await asyncio.to_thread(next_summary, recalled, index, sizes, limits, calibration)
        if isinstance(following, NoSummary):
            if following.reason == "futile":
                await self._report_futile(request, recalled, following, limits)
            return
        sighted = await self._sight(request, recalled, following)
        for entry, summary_range in () if sighted is None else following.options(sighted):
            if entry.sightings >= request.model.route.compress.sightings:
                await self._start(request, recalled, summary_range, entry)
                return

    async def _sight(self, request: RequestSummary, recalled: Recalled, following: NextSummary) -> SummaryIndex | None:
        """Counts this request for the boundaries that it carries. Returns the index then; None where it could not be
        changed, or where a newer summary is there: the next request uses it, and is measured with it."""
        boundary = following.planned.boundary
        known: list[IndexEntry | None] = []

        def count(index: SummaryIndex) -> SummaryIndex:
            known[:] = [index.find(boundary.digest)]
            return index if recalled.newer_summary(index) else following.sighted(index, recalled)

        index = await change_index(request.store.store, request.store.tenant, recalled.root, count)
        if index is None or recalled.newer_summary(index):
            return None
        entry = index.find(boundary.digest)
        if entry is not None and entry.sightings == 1 and [entry] != known:
            self._reporter.report(notices.candidate(boundary.turns), request.request_id)
        return index

    async def _start(
        self, request: RequestSummary, recalled: Recalled, summary_range: SummaryRange, entry: IndexEntry
    ) -> None:
        compress = request.model.route.compress
        task = SummaryTask(
            request.store.store,
            request.store.tenant,
            recalled,
            summary_range,
            self.writer(request.model),
            request.request_id,
            compress.deadline_s,
            compress.json_schema,
        )
        limits = self.job_limits(task.tenant, compress)
        await self.jobs.run(task, entry.digest, limits)

    def job_limits(self, tenant: str, compress: CompressSettings) -> JobLimits:
        """Returns the bounds of the jobs of a key."""
        own = self._key_settings(tenant).tokens_per_day
        # The number of jobs is one for all models of a worker.
        return JobLimits(compress.sightings, self._settings.compress.max_running, own or compress.tokens_per_day)

    async def _report_futile(
        self, request: RequestSummary, recalled: Recalled, planned: NoSummary, limits: CompressLimits
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
        return key_compress(self._settings, key)


def key_compress(settings: Settings, key: str) -> KeyCompressSettings:
    """Returns what the settings say of the summaries of a client key."""
    entry = settings.keys.get(key) or settings.keys.get(DEFAULT_CLIENT)
    return KeyCompressSettings() if entry is None else entry.compress


async def _sizes(turns: Sequence[Turn], known: Sequence[int] | None) -> Sequence[int]:
    """Returns the estimates of all turns; of those that are `known`, 0 stands for the others."""
    if len(turns) > MANY_TURNS:
        return await asyncio.to_thread(_measure, turns, known)
    return _measure(turns, known)


def _measure(turns: Sequence[Turn], known: Sequence[int] | None) -> Sequence[int]:
    if known is None:
        return [estimate_turn(turn) for turn in turns]
    return [size or estimate_turn(turn) for turn, size in zip(turns, known, strict=True)]


def open_summaries(models: ModelCalls, metrics: Metrics, event_bus: EventBus) -> Summaries:
    """Returns the feature, without settings yet (`Summaries.use`)."""
    reporter = SummaryReporter(metrics, event_bus)
    return Summaries(SummaryJobs(models, metrics, reporter), metrics, reporter)
