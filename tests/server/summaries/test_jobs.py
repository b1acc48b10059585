"""Tests the jobs of several workers on one store, of every kind: one at a time, fenced, and never twice."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest

from gateway.core.conversation import Text, Turn, TurnScope
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_turn
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.memory.history_digest import history_digests, root
from gateway.memory.summaries.plan import CompressLimits, SummaryRange, plan_range
from gateway.registry import load_dialect
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.store import Lease, Put, StateStore, StoreUnavailable
from gateway.server.summaries.index import IndexEntry, SummaryIndex, seen
from gateway.server.summaries.job import SummaryTask, prepare_job
from gateway.server.summaries.jobs import JobLimits, SummaryJobs
from gateway.server.summaries.notices import SummaryReporter
from gateway.server.summaries.recall import Recalled
from gateway.server.summaries.summary_store import change_index, read_index, shared_key, spend
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import RoutedModel
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings, ModelSettings
from gateway.testing.faulty import faulty_backend
from tests.server.state.stores import STORES, Pair
from tests.server.summaries.scripted import PATIENCE_S, WINDOW, ScriptedModel, agent_history, rules_told

SECRET: Final = b"secret of the tests"
LIMITS: Final = JobLimits(sightings=2, max_running=2, tokens_per_day=None)
# What a worker that renews often believes its lease to be: a third of it lies between two renewals.
LEASE_S: Final = 0.03


class Workers:
    """Several workers on one store, and the backend behind them."""

    def __init__(self, store: StateStore, transport: Transport, model: ScriptedModel) -> None:
        self.store = store
        self.model = model
        self.now = 1_000_000.0
        self._transport = transport
        self.metrics = Metrics()
        self.task = self._task(store)
        self.candidate = self.task.summary_range.boundary.digest

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return shared_key(self.candidate)

    def worker(self, lease_s: float = 30) -> SummaryJobs:
        reporter = SummaryReporter(self.metrics, EventBus())
        return SummaryJobs(ModelCalls(self._transport), self.metrics, reporter, lambda: self.now, lease_s)

    async def run(self, worker: SummaryJobs, limits: JobLimits = LIMITS, on: StateStore | None = None) -> None:
        task = self.task if on is None else msgspec.structs.replace(self.task, store=on)
        await worker.run(task, self.candidate, limits)

    async def index(self) -> SummaryIndex:
        return (await read_index(self.store, "-", self.task.root))[0]

    async def summarised(self) -> set[bytes]:
        """Returns the digests of the boundaries that have a summary."""
        return {entry.digest for entry in (await self.index()).entries if entry.outcome == "summary"}

    def _task(self, store: StateStore) -> SummaryTask:
        document = Document({"model": "m", "messages": agent_history(40)})
        conversation = load_dialect().decode(document, RequestHead("")).conversation
        boundaries = history_digests(conversation.turns, SECRET, "-")
        first = root(boundaries)
        sizes = [estimate_turn(turn) for turn in conversation.turns]
        summary_range = plan_range(conversation, boundaries, sizes, CompressLimits(WINDOW))
        assert isinstance(summary_range, SummaryRange) and first is not None
        backend = Backend("b", BackendSettings("openai_chat", self.model.base_url), 1 << 20)
        route = ModelSettings("b", None, Policy(), context_length=WINDOW)
        recalled = Recalled(conversation, boundaries, first.digest, SummaryIndex(), None)
        return SummaryTask(store, "-", recalled, summary_range, RoutedModel("m", route, backend), "req_1", 20)


@asynccontextmanager
async def workers_on(store: StateStore) -> AsyncIterator[Workers]:
    """Runs the backend; the boundary was seen twice."""
    model = ScriptedModel()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        model.base_url = backend.base_url
        transport = await stack.enter_async_context(Transport(1 << 20, 1 << 16))
        workers = Workers(store, transport, model)
        boundary = workers.task.summary_range.boundary
        entry = IndexEntry(boundary.turns, boundary.digest, sightings=2)
        await change_index(store, "-", workers.task.root, lambda index: index.with_entry(entry))
        yield workers


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")


@pytest.fixture(params=STORES)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """One store, as two workers have it."""
    async with STORES[request.param](tmp_path, []) as handles:
        yield handles


async def test_four_workers_make_one_call(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        four = [(workers.worker(), store) for store in pair * 2]
        await asyncio.gather(*(workers.run(worker, on=store) for worker, store in four for _ in range(12)))
        await workers.run(workers.worker())
        assert len(workers.model.summarised) == 1
        assert [entry.outcome for entry in (await workers.index()).entries] == ["summary"]


async def test_a_lease_is_renewed_while_the_model_writes(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        workers.model.gate.clear()
        store = LongLeases(pair[1])
        running = asyncio.create_task(workers.run(workers.worker(LEASE_S), on=cast(StateStore, store)))
        await workers.model.has_begun()
        await store.is_renewed(3)
        async with asyncio.timeout(PATIENCE_S):
            await workers.run(workers.worker())
        workers.model.gate.set()
        await running
        assert len(workers.model.summarised) == 1
        assert await workers.summarised() == {workers.candidate}


class OtherStore:
    """A store that differs in some of its operations."""

    def __init__(self, store: StateStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class LongLeases(OtherStore):
    """A store whose leases outlive every pause of the machine, whatever a worker asks for. The worker renews them as
    often as those that it asked for. `end` ends the lease as if its time had passed."""

    held: Lease | None = None
    renewals = 0

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        self.held = await self.store.acquire(tenant, name, 600)
        return None if self.held is None else msgspec.structs.replace(self.held, ttl_s=ttl_s)

    async def renew(self, lease: Lease) -> bool:
        renewed = await self.store.renew(msgspec.structs.replace(lease, ttl_s=600))
        self.renewals += renewed
        return renewed

    async def is_renewed(self, times: int) -> None:
        """Waits until the lease has been renewed so often."""
        async with asyncio.timeout(PATIENCE_S):
            while self.renewals < times:  # noqa: ASYNC110 (a count tells it, no event)
                await asyncio.sleep(LEASE_S / 3)

    async def end(self) -> None:
        assert self.held is not None
        assert await self.store.renew(msgspec.structs.replace(self.held, ttl_s=0.001))


async def acquired(store: StateStore, name: str) -> Lease:
    """Returns the lease, as soon as nobody holds it."""
    async with asyncio.timeout(PATIENCE_S):
        while (lease := await store.acquire("-", name, 30)) is None:  # noqa: ASYNC110 (no event tells it)
            await asyncio.sleep(0.01)
    return lease


class StaleStore(LongLeases):
    """As a worker sees the store that was held up past its lease, and does not know it."""

    async def renew(self, lease: Lease) -> bool:
        return True


async def test_a_worker_that_was_held_up_past_its_lease_stores_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    store, other = pair
    async with workers_on(store) as workers:
        workers.model.gate.clear()
        stale = StaleStore(other)
        held_up = asyncio.create_task(workers.run(workers.worker(LEASE_S), on=cast(StateStore, stale)))
        await workers.model.has_begun()
        await stale.end()
        # Its attempt counts, and now another worker has the lease.
        lease = await acquired(store, f"summary:{workers.task.root.hex()}")
        first = Put("sum", b"first", b"of the other worker", 60)
        assert await store.commit(lease, [first])
        workers.model.gate.set()
        await held_up
        assert await workers.summarised() == set()
        assert [usage.entries for usage in (await store.stats()).usage if usage.space == "sum"] == [1]
        assert "SUMMARY_STORED" not in rules_told(caplog)


async def test_a_job_ends_without_an_answer_when_its_key_is_forgotten(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    store, other = pair
    async with workers_on(store) as workers:
        workers.model.gate.clear()
        running = asyncio.create_task(workers.run(workers.worker(LEASE_S), on=cast(StateStore, LongLeases(other))))
        await workers.model.has_begun()
        await store.forget("-")
        async with asyncio.timeout(PATIENCE_S):
            await running
        assert not workers.model.gate.is_set() and rules_told(caplog)[-1] == "SUMMARY_FAILED"
        assert (await store.stats()).usage == ()
        workers.model.gate.set()


async def test_the_first_record_of_a_span_stays(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        await workers.run(workers.worker())
        before = await workers.store.get("-", "sum", [workers.key])
        boundary = workers.task.summary_range.boundary
        again = IndexEntry(boundary.turns, boundary.digest, sightings=2)
        await change_index(workers.store, "-", workers.task.root, lambda index: index.with_entry(again))
        await workers.run(workers.worker())
        assert len(workers.model.summarised) == 2
        assert await workers.store.get("-", "sum", [workers.key]) == before
        assert await workers.summarised() == {workers.candidate}


async def test_a_worker_runs_so_many_jobs_and_no_more(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        workers.model.gate.clear()
        worker = workers.worker()
        running = asyncio.create_task(workers.run(worker))
        await workers.model.has_begun()
        recalled = msgspec.structs.replace(workers.task.recalled, root=b"another root")
        other = msgspec.structs.replace(workers.task, recalled=recalled)
        await worker.run(other, workers.candidate, msgspec.structs.replace(LIMITS, max_running=1))
        workers.model.gate.set()
        await running
        assert len(workers.model.summarised) == 1


async def test_a_worker_that_comes_late_leaves_a_summary_of_other_turns_alone(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        # Another worker has covered less, because it has measured other responses.
        earlier = workers.task.recalled.boundaries[-20]
        written = IndexEntry(earlier.turns, earlier.digest, "summary", generation=1)
        await change_index(workers.store, "-", workers.task.root, lambda index: index.with_entry(written))
        await workers.run(workers.worker())
        assert not workers.model.summarised


async def test_failures_come_later_each_time_and_end(pair: Pair) -> None:
    async with workers_on(pair[0]) as workers:
        workers.model.summarise = lambda _: "Error: overloaded"
        calls = []
        for pause in (0, 1, 59, 299, 1, 1800, 3600, 3600):
            workers.now += pause
            await workers.run(workers.worker())
            calls.append(len(workers.model.summarised))
        assert calls == [1, 1, 2, 2, 3, 4, 4, 4]
        assert [entry.outcome for entry in (await workers.index()).entries] == ["abandoned"]


async def test_an_attempt_that_was_killed_counts_and_the_next_one_follows_the_lease(pair: Pair) -> None:
    store, other = pair
    async with workers_on(store) as workers:
        workers.model.gate.clear()
        unreleased = UnreleasedStore(other)
        killed = asyncio.create_task(workers.run(workers.worker(), on=cast(StateStore, unreleased)))
        await workers.model.has_begun()
        killed.cancel()
        await asyncio.wait({killed})
        await workers.run(workers.worker())
        assert len(workers.model.summarised) == 1
        await unreleased.end()
        await store.release(await acquired(store, f"summary:{workers.task.root.hex()}"))
        workers.model.gate.set()
        await workers.run(workers.worker())
        assert len(workers.model.summarised) == 2
        # What has succeeded is no attempt that failed; what was killed is one.
        assert len((await workers.index()).attempts) == 1
        assert await workers.summarised() == {workers.candidate}


class UnreleasedStore(LongLeases):
    """The store of a worker that is killed: it releases nothing."""

    async def release(self, lease: Lease) -> None:
        pass


async def test_a_store_that_is_away_for_a_moment_ends_no_job(pair: Pair) -> None:
    store, other = pair
    async with workers_on(store) as workers:
        workers.model.gate.clear()
        flaky = FlakyStore(other)
        running = asyncio.create_task(workers.run(workers.worker(LEASE_S), on=cast(StateStore, flaky)))
        await workers.model.has_begun()
        await flaky.is_renewed(2)
        workers.model.gate.set()
        await running
        assert await workers.summarised() == {workers.candidate}


class FlakyStore(LongLeases):
    """A store that cannot be reached the first time that a lease is renewed."""

    away = True

    async def renew(self, lease: Lease) -> bool:
        if self.away:
            self.away = False
            raise StoreUnavailable("slow", "renew")
        return await super().renew(lease)


class AwayStore(OtherStore):
    """A store that fails as long as `away` says, once the model has answered."""

    def __init__(self, store: StateStore, model: ScriptedModel, away: int) -> None:
        super().__init__(store)
        self.model = model
        self.away = away

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "put", "commit", "renew") and self.model.summarised and self.away > 0:
            self.away -= 1
            return self._fail
        return super().__getattr__(name)

    async def _fail(self, *_: object, **__: object) -> None:
        raise StoreUnavailable("down", "as the test wants")


@pytest.mark.parametrize("answer", ["a summary", "Error: overloaded"])
async def test_a_store_that_is_away_costs_neither_a_paid_summary_nor_the_pause_after_a_failure(
    pair: Pair, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.summaries.jobs.RETRY_S", 0.01)
    async with workers_on(pair[0]) as workers:
        if answer != "a summary":
            workers.model.summarise = lambda _: answer
        away = AwayStore(pair[1], workers.model, 20)
        await workers.run(workers.worker(), on=cast(StateStore, away))
        await workers.run(workers.worker())
        assert (away.away, len(workers.model.summarised)) == (0, 1)
        assert (await workers.summarised() == {workers.candidate}) is (answer == "a summary")


async def test_a_paid_summary_is_given_up_with_its_lease(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.server.summaries.jobs.RETRY_S", 0.01)
    async with workers_on(pair[0]) as workers:
        away = AwayStore(cast(StateStore, LongLeases(pair[1])), workers.model, 1_000_000)
        async with asyncio.timeout(PATIENCE_S):
            await workers.run(workers.worker(LEASE_S), on=cast(StateStore, away))
        assert rules_told(caplog)[-1] == "SUMMARY_FAILED" and await workers.summarised() == set()


@pytest.mark.parametrize(("counted", "made"), [(1, True), (7, True), (8, False)])
async def test_requests_that_are_counted_at_the_start_of_a_job_do_not_prevent_it(
    counted: int, made: bool, pair: Pair
) -> None:
    store, other = pair
    limits = msgspec.structs.replace(LIMITS, tokens_per_day=100_000)
    async with workers_on(store) as workers:
        busy = BusyStore(other, workers, counted)
        await workers.run(workers.worker(), limits, on=cast(StateStore, busy))
        assert await workers.summarised() == ({workers.candidate} if made else set())
        entry = (await workers.index()).find(workers.candidate)
        assert entry is not None and (made or entry.sightings == 2 + counted)
        assert len(workers.model.summarised) == made and not (await workers.index()).attempts
        if not made:
            # Its tokens and its lease were given back.
            assert await spend(store, "-", 100_000, 100_000, workers.now)
            assert await spend(store, "-", -100_000, 100_000, workers.now)
            await workers.run(workers.worker(), limits)
        assert len(workers.model.summarised) == 1


class BusyStore(OtherStore):
    """A store in which so many requests of the conversation are counted, each just before the job writes."""

    def __init__(self, store: StateStore, workers: Workers, counted: int) -> None:
        super().__init__(store)
        self.workers = workers
        self.left = counted

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        if self.left:
            self.left -= 1
            await change_index(self.workers.store, "-", self.workers.task.root, self._counted)
        return await self.store.commit(lease, puts)

    def _counted(self, index: SummaryIndex) -> SummaryIndex:
        entry = index.find(self.workers.candidate)
        assert entry is not None
        return index.with_entry(seen(entry))


async def test_tokens_are_spent_given_back_and_limited(pair: Pair) -> None:
    store, other = pair
    assert await spend(store, "a", 60, 100, 0)
    assert not await spend(other, "a", 41, 100, 0)
    assert await spend(store, "a", -30, 100, 0)
    assert await spend(store, "a", 70, 100, 0)
    assert await spend(store, "b", 100, 100, 0)
    assert await spend(store, "a", 100, 100, 24 * 3600)
    assert await spend(store, "a", 1000, None, 0)


async def test_text_that_was_for_one_turn_is_not_summarised(pair: Pair) -> None:
    """The history that a digest stands for keeps it, so that the summary is found again."""
    async with workers_on(pair[0]) as workers:
        recalled = workers.task.recalled
        turns = (*recalled.conversation.turns[:2], Turn("system", (Text("Be quick."),), index=2))
        directed = msgspec.structs.replace(
            recalled.conversation,
            turns=(*turns, *recalled.conversation.turns[2:]),
            directives=(TurnScope(2),),
        )
        recalled = msgspec.structs.replace(recalled, conversation=directed)
        task = msgspec.structs.replace(workers.task, recalled=recalled)
        assert "Be quick." in [turn.text for turn in directed.turns]
        assert b"Be quick." not in prepare_job(task).exchange.request.body
