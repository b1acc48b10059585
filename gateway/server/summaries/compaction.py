"""Makes the compaction that a client asks for.

A compaction stands for all messages before it. Its summary is checked as any other one; where no model writes one that
may be used, it holds what needs no model: the words of the user, the calls and the errors. So it never fails because of
a check of ours: clients have nothing else to continue with.
"""

import asyncio
import time

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.errors import BackendTimeout, GatewayError, InvalidRequest
from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_text
from gateway.history.classify import system_prefix
from gateway.memory.summaries.job_answer import SummaryRejected, read_summary
from gateway.memory.summaries.sealed_summary import SealedSummary
from gateway.memory.summaries.summary import SummaryContent, without_oldest
from gateway.memory.summaries.view import repeated_turns, running_round
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.store import StateStore, StoreUnavailable
from gateway.server.summaries.covered_history import NOTHING, CoveredHistory, covered_history
from gateway.server.summaries.index import SummaryIndex
from gateway.server.summaries.job import SummaryTask, Written, ask, prepare_job
from gateway.server.summaries.opened_history import Opened, open_history, stand_in
from gateway.server.summaries.recall import Recalled
from gateway.server.summaries.seal import SummarySeal
from gateway.server.summaries.summary_store import spend
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.completion import RoutedModel


class CompactionRequest(msgspec.Struct, frozen=True):
    """The compaction that a client asks for: of this history, for this API key (`tenant`), by this model.

    `store` counts the tokens of the key, of which it may use `tokens_per_day` (None: no limit). `began` is the time of
    the request, in seconds since 1970: what is forgotten while the summary is written is not opened either.
    """

    opened: Opened
    tenant: str
    request_id: str
    model: RoutedModel
    writer: RoutedModel
    store: StateStore
    tokens_per_day: int | None
    began: float


class Compaction(msgspec.Struct, frozen=True):
    """A finished compaction: the sealed text for the client, its summary, what it cost, and the notices of it.
    `conversation` is the one that goes on with it: what the model has not answered follows the summary once more."""

    sealed: str
    summary: SealedSummary
    conversation: Conversation
    usage: UsageReport
    notices: tuple[Notice, ...]


class Compactions:
    """The feature, in one worker."""

    def __init__(self, seal: SummarySeal, models: ModelCalls, metrics: Metrics) -> None:
        self._seal = seal
        self._models = models
        self._metrics = metrics

    def opened(self, tenant: str, conversation: Conversation) -> Opened:
        """Returns `open_history` of the conversation, with the seal of this gateway. Raises InvalidRequest."""
        return open_history(self._seal, tenant, conversation)

    async def covered(self, request: CompactionRequest) -> CoveredHistory:
        """Returns what the compaction covers. Raises InvalidRequest for a history that no backend could be sent, and
        for one of too many messages."""
        route, writer = request.model.route, request.writer.route
        return await asyncio.to_thread(
            covered_history, request.opened, request.tenant, route.policy, route.context_length, writer.context_length
        )

    async def compact(self, request: CompactionRequest, covered: CoveredHistory) -> Compaction:
        """Returns the compaction of what is covered. Whatever the writing model does, there is one; it takes
        `compress.deadline_s` at most, and what it takes to prepare and to seal it."""
        if covered.range is None:
            usage, reason = _no_usage(), _unfit(request, covered)
            return await asyncio.to_thread(self._sealed, request, covered, covered.written_before, usage, reason)
        content, usage, reason = await self._written(request, covered)
        return await asyncio.to_thread(self._sealed, request, covered, content, usage, reason)

    async def _written(
        self, request: CompactionRequest, covered: CoveredHistory
    ) -> tuple[SummaryContent, UsageReport, str]:
        """Returns what a model writes, its cost, and why nothing of it may be used; an empty reason: it may be."""
        backend = request.writer.backend.name
        task = _task(request, covered)
        before = covered.written_before
        spent = 0
        usage = _no_usage()
        try:
            job = await asyncio.to_thread(prepare_job, task)
            if not await self._spend(request, job.tokens, request.tokens_per_day):
                return before, usage, "the key would exceed its tokens of the day"
            spent = job.tokens
            written = await ask(self._models, task, job)
            usage = _total(written.usage)
            self._count(request, written)
            await self._spend(request, (usage.total_tokens or 0) - spent)
            summary = await asyncio.to_thread(read_summary, written.answer, covered.turns, task.summary_range)
        except SummaryRejected as error:
            self._metrics.summaries.inc(backend, "rejected")
            return before, usage, str(error)
        except GatewayError as error:
            self._metrics.summaries.inc(backend, "failed")
            if not isinstance(error, BackendTimeout):
                await self._spend(request, -spent)
            return before, usage, f"{error.code}: {request.writer.backend.redact(error.message).rstrip('.')}"
        self._metrics.summaries.inc(backend, "stored")
        return summary.content, usage, ""

    def _count(self, request: CompactionRequest, written: Written) -> None:
        backend, usage = request.writer.backend.name, written.usage
        self._metrics.summary_tokens.inc(backend, request.tenant, "prompt", by=usage.prompt_tokens or 0)
        self._metrics.summary_tokens.inc(backend, request.tenant, "completion", by=usage.completion_tokens or 0)
        self._metrics.summary_seconds.observe(written.milliseconds / 1000, backend)

    async def _spend(self, request: CompactionRequest, tokens: int, most: int | None = None) -> bool:
        """Counts tokens of the key. While the store is away nothing is counted: the client waits."""
        try:
            return await spend(request.store, request.tenant, tokens, most, time.time())
        except StoreUnavailable:
            return True

    def _sealed(
        self,
        request: CompactionRequest,
        covered: CoveredHistory,
        content: SummaryContent,
        usage: UsageReport,
        reason: str,
    ) -> Compaction:
        """Returns the compaction with what has room in a sealed text. Raises InvalidRequest where nothing has."""
        summary = SealedSummary(
            created=request.began,
            digest=covered.digest,
            speakers=covered.speakers,
            content=content,
            known=covered.known,
            written=not reason,
            unreadable=covered.unreadable,
        )
        while (text := self._seal.seal(request.tenant, summary)) is None:
            known = without_oldest(summary.known)
            if known != summary.known:
                summary = msgspec.structs.replace(summary, known=known)
            elif summary.content != NOTHING:
                reason = "it is too long to be sealed"
                summary = msgspec.structs.replace(summary, known=covered.known, content=NOTHING, written=False)
            else:
                raise InvalidRequest("The history is too long: not even its outline has room in a sealed compaction.")
        told = _told(request, covered, summary, reason)
        return Compaction(text, summary, _going_on(covered.history, summary), usage, (*covered.notices, told))


def _unfit(request: CompactionRequest, covered: CoveredHistory) -> str:
    """Returns why no model is asked; empty where nothing has to be written."""
    if covered.is_new:
        return f"the history does not fit into the window of {request.writer.name!r}"
    return "the history has no messages" if covered.earlier is None else ""


def _no_usage() -> UsageReport:
    return UsageReport(0, 0, 0, estimated=True)


def _going_on(history: Conversation, summary: SealedSummary) -> Conversation:
    turns = history.turns
    start = system_prefix(turns)
    begin = max(running_round(turns), start)
    again = [turns[position] for position in repeated_turns(turns, begin) if not turns[position].summary]
    sent = (*turns[:start], stand_in(summary), *again, *[turn for turn in turns[begin:] if not turn.summary])
    return msgspec.structs.replace(history, turns=sent)


def _task(request: CompactionRequest, covered: CoveredHistory) -> SummaryTask:
    assert covered.range is not None  # else no model is asked
    history = msgspec.structs.replace(request.opened.conversation, turns=covered.turns)
    compress = request.model.route.compress
    return SummaryTask(
        request.store,
        request.tenant,
        Recalled(history, (), b"", SummaryIndex(), None),
        covered.range,
        request.writer,
        request.request_id,
        compress.deadline_s,
        compress.json_schema,
    )


def _total(usage: UsageReport) -> UsageReport:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return msgspec.structs.replace(usage, total_tokens=prompt + completion)


def _told(request: CompactionRequest, covered: CoveredHistory, summary: SealedSummary, reason: str) -> Notice:
    now = estimate_text(summary.text)
    if not covered.is_new and not reason:
        kept = f"the compaction of {summary.turns} messages is kept, about {now} tokens: nothing is new behind it"
        return Notice("state", "added", "COMPACTION_MADE", kept)
    size = f"{summary.turns} messages, about {covered.tokens} tokens as {now}"
    if reason:
        unwritten = (
            f"a compaction of {size}, holds no new summary by a model: {reason}. It holds the user's words, the calls "
            "and the errors"
        )
        return Notice("state", "added", "COMPACTION_UNWRITTEN", unwritten, level="warning")
    made = f"a compaction stands for {size}, written by {request.writer.name!r}"
    if covered.passed_over:
        made += f", which has not read {covered.passed_over} of them"
    return Notice("state", "added", "COMPACTION_MADE", made)
