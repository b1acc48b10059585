"""Runs the jobs that write summaries: one for a conversation on all workers together, a few at once on each worker.

A worker claims a conversation twice: in memory, before the first await, so that equal requests of one worker start one
job; then by a lease of the store. The lease's token fences what the job stores: a worker that was held up past its
lease stores nothing. Leases only save money. Were both lost, the first record of a span would still stay, because a
record is written only where there is none.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from gateway.core.errors import BackendTimeout, GatewayError
from gateway.core.notices import Notice
from gateway.memory.summaries.job_answer import SummaryRejected
from gateway.memory.summaries.summary import SummaryRecord
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.store import Lease, StateStore, StoreUnavailable
from gateway.server.summaries import notices
from gateway.server.summaries.index import IndexEntry, SummaryIndex, failed
from gateway.server.summaries.job import SummaryTask, Written, ask, prepare_job, record_of
from gateway.server.summaries.summary_store import (
    TRIES,
    change_index,
    has_record,
    index_put,
    read_index,
    record_put,
    spend,
)
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.completion import CompletionRequest

LEASE_S: Final = 30.0
# The time between two looks at whether a job may go on. Others stop using what was forgotten within 5 s.
CHECK_S: Final = 2.0
# The time between two tries to store what was paid for.
RETRY_S: Final = 0.5

T = TypeVar("T")


class JobLimits(msgspec.Struct, frozen=True):
    """The bounds of the jobs of one request: the sightings that a boundary needs, the jobs of this worker, the tokens
    of the key in a day (None: no limit)."""

    sightings: int
    max_running: int
    tokens_per_day: int | None


class LeaseLost(Exception):
    """The lease has ended, so that another worker may do this work now, or what its key has stored was deleted."""


class SummaryJobs:
    """The jobs of one worker."""

    def __init__(
        self,
        models: ModelCalls,
        metrics: Metrics,
        reporter: notices.SummaryReporter,
        clock: Callable[[], float] = time.time,
        lease_s: float = LEASE_S,
    ) -> None:
        self._models = models
        self._metrics = metrics
        self._reporter = reporter
        self._clock = clock
        self._lease_s = lease_s
        self._running: set[tuple[str, bytes]] = set()
        metrics.summaries_running.set_function(lambda: len(self._running))

    def is_running(self, tenant: str, root: bytes) -> bool:
        """Returns whether this worker writes a summary of the conversation now."""
        return (tenant, root) in self._running

    async def run(self, task: SummaryTask, candidate: bytes, limits: JobLimits) -> None:
        """Writes and stores a summary, unless another job is at it, or the limits refuse it. `candidate` is the digest
        of the indexed boundary that the task's range lies in. Raises StoreUnavailable."""
        place = (task.tenant, task.root)
        if place in self._running or len(self._running) >= limits.max_running:
            return
        self._running.add(place)
        try:
            await self._lead(task, candidate, limits)
        finally:
            self._running.discard(place)

    async def _lead(self, task: SummaryTask, candidate: bytes, limits: JobLimits) -> None:
        lease = await task.store.acquire(task.tenant, f"summary:{task.root.hex()}", self._lease_s)
        if lease is None:
            return
        try:
            # What was read before the lease may have become old: another worker may have finished meanwhile.
            index, _ = await read_index(task.store, task.tenant, task.root)
            if _is_due(index, task, candidate, limits, self._clock()):
                await self._attempt(lease, task, candidate, limits)
        finally:
            with suppress(StoreUnavailable):
                await task.store.release(lease)

    async def _attempt(self, lease: Lease, task: SummaryTask, candidate: bytes, limits: JobLimits) -> None:
        """Counts the attempt before it is made: a worker that is killed in its midst has made one, too. What looks
        through the history runs in a thread, because requests are being served meanwhile."""
        turns = task.summary_range.boundary.turns
        try:
            request = await asyncio.to_thread(prepare_job, task)
        except GatewayError as error:
            told = notices.failed(turns, f"{error.code}: {error.message}")
            await self._fail(lease, task, candidate, "failed", told)
            return
        if not await self._spend(task, request.tokens, limits.tokens_per_day):
            over = notices.over_budget(turns, request.tokens)
            self._reporter.report_daily(over, task.request_id, task.tenant)
            return
        began = await self._begin(lease, task, candidate, limits)
        if began is None:
            await self._spend(task, -request.tokens)
            return
        self._report(notices.started(turns, task.summary_range.covered_tokens, task.writer.name), task)
        try:
            written = await self._held(lease, task, request)
            await self._count(task, written, request.tokens)
            record = await asyncio.to_thread(record_of, task, written)
            await _while_held(lease, lambda: self._keep(lease, record, task, began))
        except SummaryRejected as error:
            await self._fail(lease, task, candidate, "rejected", notices.rejected(turns, str(error)))
        except LeaseLost:
            self._end(task, "lost", notices.failed(turns, "its lease has ended, or its key was forgotten"))
        except StoreUnavailable as error:
            self._end(task, "failed", notices.failed(turns, str(error)))
        except GatewayError as error:
            reason = f"{error.code}: {task.writer.backend.redact(error.message)}"
            await self._fail(lease, task, candidate, "failed", notices.failed(turns, reason))
            if not isinstance(error, BackendTimeout):
                await self._spend(task, -request.tokens)

    async def _begin(self, lease: Lease, task: SummaryTask, candidate: bytes, limits: JobLimits) -> float | None:
        """Counts an attempt, and returns its time; None where it may not be made. Requests of the conversation may be
        counted meanwhile."""
        for _ in range(TRIES):
            index, version = await read_index(task.store, task.tenant, task.root)
            now = self._clock()
            if not _is_due(index, task, candidate, limits, now):
                return None
            if await task.store.commit(lease, [index_put(task.root, index.with_attempt(now), version)]):
                return now
            if not await task.store.renew(lease):
                return None
        return None

    async def _held(self, lease: Lease, task: SummaryTask, request: CompletionRequest) -> Written:
        """Waits for the answer while it renews the lease, and stops the request when that ends. Raises LeaseLost and
        GatewayError."""
        work = asyncio.create_task(ask(self._models, task, request))
        try:
            while not (await asyncio.wait({work}, timeout=min(CHECK_S, lease.ttl_s / 3)))[0]:
                if not await _renewed(task.store, lease):
                    raise LeaseLost
            return work.result()
        finally:
            work.cancel()
            await asyncio.wait({work})

    async def _count(self, task: SummaryTask, written: Written, expected: int) -> None:
        backend, usage = task.writer.backend.name, written.usage
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        self._metrics.summary_tokens.inc(backend, task.tenant, "prompt", by=prompt)
        self._metrics.summary_tokens.inc(backend, task.tenant, "completion", by=completion)
        self._metrics.summary_seconds.observe(written.milliseconds / 1000, backend)
        with suppress(StoreUnavailable):
            await self._spend(task, prompt + completion - expected)

    async def _spend(self, task: SummaryTask, tokens: int, most: int | None = None) -> bool:
        return await spend(task.store, task.tenant, tokens, most, self._clock())

    async def _keep(self, lease: Lease, record: SummaryRecord, task: SummaryTask, began: float) -> None:
        """Stores a record and its entry of the index, both or none. Where there is a record already, that one stays.
        The attempt no longer counts: it has not failed."""
        entry = IndexEntry(record.turns, record.digest, "summary", generation=record.generation)
        for _ in range(TRIES):
            index, version = await read_index(task.store, record.tenant, record.root)
            puts = [index_put(record.root, index.with_entry(entry).without_attempt(began), version)]
            if not await has_record(task.store, record):
                puts.append(record_put(record))
            if await task.store.commit(lease, puts):
                cost = record.cost
                stored = notices.stored(record.turns, cost.covered_tokens, cost.summary_tokens, record.generation)
                self._end(task, "stored", stored)
                return
            if not await task.store.renew(lease):
                break
        raise LeaseLost

    async def _fail(self, lease: Lease, task: SummaryTask, candidate: bytes, outcome: str, notice: Notice) -> None:
        """Lets the next attempt wait."""
        self._end(task, outcome, notice)
        now = self._clock()

        def later(index: SummaryIndex) -> SummaryIndex:
            entry = index.find(candidate)
            return index if entry is None else index.with_entry(failed(entry, now))

        await _while_held(lease, lambda: change_index(task.store, task.tenant, task.root, later))

    def _end(self, task: SummaryTask, outcome: str, notice: Notice) -> None:
        self._metrics.summaries.inc(task.writer.backend.name, outcome)
        self._report(notice, task)

    def _report(self, notice: Notice, task: SummaryTask) -> None:
        self._reporter.report(notice, task.request_id)


async def _while_held(lease: Lease, write: Callable[[], Awaitable[T]]) -> T:
    """Makes a write, again and again while the store fails and the lease may live: a store that is away for a moment
    costs neither a summary that was paid for nor the pause after a failure. Raises StoreUnavailable."""
    until = time.monotonic() + lease.ttl_s
    while True:
        try:
            return await write()
        except StoreUnavailable:
            if time.monotonic() + RETRY_S >= until:
                raise
        await asyncio.sleep(RETRY_S)


async def _renewed(store: StateStore, lease: Lease) -> bool:
    """A store that is away for a moment ends no job: what the job stores is fenced in any case."""
    try:
        return await store.renew(lease)
    except StoreUnavailable:
        return True


def _is_due(index: SummaryIndex, task: SummaryTask, candidate: bytes, limits: JobLimits, now: float) -> bool:
    """Returns whether the work is still to be done. Another worker may have summarised another part of these turns."""
    entry = index.find(candidate)
    if entry is None or entry.outcome != "candidate" or task.recalled.newer_summary(index):
        return False
    return index.refusal(entry, limits.sightings, now) is None
