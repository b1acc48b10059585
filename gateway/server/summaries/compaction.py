"""Makes the compaction that a client asks for, and opens those that its history holds.

A compaction stands for all messages before it. Its summary is checked as any other one; where no model writes one that
may be used, it holds what needs no model: the words of the user, the calls and the errors. So it never fails because of
a check of ours: clients have nothing else to continue with.
"""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Text, Turn, index_of
from gateway.core.errors import BackendTimeout, GatewayError, InvalidRequest
from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_text, estimate_turn
from gateway.history.classify import system_prefix
from gateway.history.prepare import repaired
from gateway.memory.summaries.history_digest import Boundary, history_digests
from gateway.memory.summaries.job_answer import SummaryRejected, read_summary
from gateway.memory.summaries.job_request import PROMPT_VERSION
from gateway.memory.summaries.known_facts import is_said, joined, known_of
from gateway.memory.summaries.plan import (
    MAX_CALLS,
    PROSE_SHARE,
    PROSE_TOKENS,
    PROSE_WINDOW_SHARE,
    REASONING_TOKENS,
    REASONING_WINDOW_SHARE,
    SPARE_SHARE,
    TOLERANCE,
    WORDS_SHARE,
    SummaryRange,
)
from gateway.memory.summaries.sealed_summary import (
    SealedSummary,
    SealUnreadable,
    is_sealed,
    sealed_in,
    speakers_of,
    stand_ins,
)
from gateway.memory.summaries.summary import Cost, Known, Producer, SummaryContent, SummaryRecord, without_oldest
from gateway.memory.summaries.view import JobInput, repeated_turns, running_round
from gateway.server.state.store import StateStore, StoreUnavailable
from gateway.server.summaries.index import SummaryIndex
from gateway.server.summaries.job import RoutedModel, SummaryTask, Written, ask, prepare_job
from gateway.server.summaries.recall import Recalled
from gateway.server.summaries.seal import SummarySeal
from gateway.server.summaries.summary_store import spend
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.transport import Transport

# The window of a model whose settings name none. A client compacts when its history nearly fills the window that it
# knows of.
ASSUMED_WINDOW: Final = 128_000
# A history of more tokens than this share of it says that the window is larger.
_FILLED: Final = 0.9
# The most tokens of the user's own words in a sealed summary, which has room for a limited number of bytes.
MOST_WORDS: Final = 24_000
_INSTRUCTIONS: Final = 800
# What lists calls and errors beside words and prose.
_LISTED: Final = 3_000

_EMPTY: Final = SummaryContent()


class Opened(msgspec.Struct, frozen=True):
    """A conversation with the text of each sealed summary in its place, the summaries in order, and the notices."""

    conversation: Conversation
    summaries: tuple[SealedSummary, ...] = ()
    notices: tuple[Notice, ...] = ()


class CompactionRequest(msgspec.Struct, frozen=True):
    """The compaction that a client asks for: of this history, for this API key (`tenant`), by this model.

    `store` counts the tokens of the key, of which it may use `tokens_per_day` (None: no limit).
    """

    opened: Opened
    tenant: str
    request_id: str
    model: RoutedModel
    writer: RoutedModel
    store: StateStore
    tokens_per_day: int | None


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

    def __init__(self, seal: SummarySeal, transport: Transport, metrics: Metrics) -> None:
        self._seal = seal
        self._transport = transport
        self._metrics = metrics

    def opened(self, tenant: str, conversation: Conversation) -> Opened:
        """Returns the conversation with the sealed summaries opened. Raises InvalidRequest for one that cannot be: the
        same error for whatever reason."""
        turns: list[Turn] = []
        start = system_prefix(conversation.turns)
        summaries: list[SealedSummary] = []
        notices: list[Notice] = []
        for position, turn in enumerate(conversation.turns):
            text = sealed_in(turn) if turn.compaction else None
            if text is None:
                turns.append(turn)
                continue
            index = index_of(conversation.turns, position)
            summary = self._open(tenant, text, conversation.paths.turn.format(turn=index))
            said = summary.text
            stands_in = Turn("user", (Text(said),), index=turn.index, synthesized=True, summary=True, compaction=True)
            if turn.role == "assistant":
                # A block of Messages stands for everything before it, and the model's own words follow it.
                rest = tuple(block for block in turn.blocks if not is_sealed(block))
                turns = [*conversation.turns[:start], stands_in]
                turns += [msgspec.structs.replace(turn.changed(*rest), compaction=False)] if rest else []
                summaries = []
            else:
                turns.append(stands_in)
            summaries.append(summary)
            detail = (
                f"a compaction that stands for {summary.turns} messages is sent as its summary, "
                f"about {estimate_text(said)} tokens"
            )
            notices.append(Notice("state", "changed", "COMPACTION_OPENED", detail, index=index))
        if not summaries:
            return Opened(conversation)
        return Opened(msgspec.structs.replace(conversation, turns=tuple(turns)), tuple(summaries), tuple(notices))

    def _open(self, tenant: str, text: str, param: str) -> SealedSummary:
        try:
            return self._seal.open(tenant, text)
        except SealUnreadable:
            message = f"{param} is a compaction that cannot be opened. Begin a new conversation, or send the messages."
            raise InvalidRequest(message, code="invalid_compaction", param=param) from None

    async def compact(self, request: CompactionRequest) -> Compaction:
        """Returns the compaction of a whole history. Raises InvalidRequest for a history that no backend could be sent,
        and nothing else."""
        covered = await asyncio.to_thread(_covered, request)
        content, usage, reason = await self._written(request, covered)
        return await asyncio.to_thread(self._sealed, request, covered, content, usage, reason)

    async def _written(
        self, request: CompactionRequest, covered: "_Covered"
    ) -> tuple[SummaryContent, UsageReport, str]:
        """Returns what a model writes, its cost, and why nothing of it may be used; an empty reason: it may be."""
        backend = request.writer.backend.name
        nothing = UsageReport(0, 0, 0, estimated=True)
        if covered.range is None:
            return _EMPTY, nothing, f"the history does not fit into the window of {request.writer.name!r}"
        task = _task(request, covered, covered.range)
        spent = 0
        usage = nothing
        try:
            job = await asyncio.to_thread(prepare_job, task)
            if not await self._spend(request, job.tokens, request.tokens_per_day):
                return _EMPTY, nothing, "the key would exceed its tokens of the day"
            spent = job.tokens
            written = await ask(self._transport, task, job)
            usage = _total(written.usage)
            self._count(request, written)
            await self._spend(request, (usage.total_tokens or 0) - spent)
            summary = await asyncio.to_thread(read_summary, written.answer, covered.turns, covered.range)
        except SummaryRejected as error:
            self._metrics.summaries.inc(backend, "rejected")
            return _EMPTY, usage, str(error)
        except GatewayError as error:
            self._metrics.summaries.inc(backend, "failed")
            if not isinstance(error, BackendTimeout):
                await self._spend(request, -spent)
            return _EMPTY, usage, f"{error.code}: {request.writer.backend.redact(error.message)}"
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
        self, request: CompactionRequest, covered: "_Covered", content: SummaryContent, usage: UsageReport, reason: str
    ) -> Compaction:
        known = covered.known
        if reason:
            # What a model wrote of earlier turns still holds, and cites their numbers.
            content = covered.before
        summary = SealedSummary(
            self._seal.clock(), covered.digest, speakers_of(covered.turns), content, known, written=not reason
        )
        while (text := self._seal.seal(request.tenant, summary)) is None:
            if known == (known := without_oldest(known)):
                # Nothing is left that could be left out but what the model wrote.
                content, reason = _EMPTY, "it is too long to be sealed"
            summary = msgspec.structs.replace(summary, known=known, content=content, written=not reason)
        going_on = _going_on(covered.history, summary)
        return Compaction(
            text, summary, going_on, usage, (*request.opened.notices, *_notices(request, covered, summary, reason))
        )


class _Covered(msgspec.Struct, frozen=True):
    """What a compaction covers: the repaired history, its turns (empty ones for those that an earlier compaction stands
    for), what is known of them without a model, the range of the job (None: nothing fits into its window), how many
    turns the job cannot read, and what a model wrote of the turns before."""

    history: Conversation
    turns: tuple[Turn, ...]
    digest: bytes
    known: Known
    tokens: int
    range: SummaryRange | None
    unread: int
    before: SummaryContent


def _covered(request: CompactionRequest) -> _Covered:
    history = repaired(request.opened.conversation, request.model.route.policy)
    turns = history.turns[system_prefix(history.turns) :]
    places = [position for position, turn in enumerate(turns) if turn.summary and turn.compaction]
    earlier = request.opened.summaries[-1] if places and request.opened.summaries else None
    fresh = turns
    if earlier is not None:
        # Clients keep messages of the user before a compaction that holds them already.
        kept = [turn for turn in turns[: places[-1]] if not turn.summary and not is_said(turn, earlier.known.words)]
        fresh = (*kept, *turns[places[-1] + 1 :])
    stands = stand_ins("" if earlier is None else earlier.speakers)
    covered = (*stands, *fresh)
    digest = _digest(fresh, b"" if earlier is None else earlier.digest, request.tenant)
    sizes = [estimate_turn(turn) for turn in covered]
    size = sum(sizes)
    window = request.model.route.context_length or max(ASSUMED_WINDOW, round(size / _FILLED))
    room = min(round(WORDS_SHARE * window), MOST_WORDS)
    known = known_of(covered, room, MAX_CALLS)
    if earlier is not None:
        spoken = (earlier.speakers + "a").index("a")
        known = joined(earlier.known, known, spoken, room, MAX_CALLS)
    job_window = request.writer.route.context_length or window
    summarised = _range(request, covered, sizes, digest, earlier, window, job_window, room)
    unread = 0 if summarised is None else summarised.start - len(stands)
    before = _EMPTY if earlier is None else earlier.content
    return _Covered(history, covered, digest, known, size, summarised, unread, before)


def _going_on(history: Conversation, summary: SealedSummary) -> Conversation:
    turns = history.turns
    start = system_prefix(turns)
    begin = max(running_round(turns), start)
    again = [turns[position] for position in repeated_turns(turns, begin) if not turns[position].summary]
    stands_in = Turn("user", (Text(summary.text),), synthesized=True, summary=True, compaction=True)
    sent = (*turns[:start], stands_in, *again, *[turn for turn in turns[begin:] if not turn.summary])
    return msgspec.structs.replace(history, turns=sent)


def _digest(turns: Sequence[Turn], before: bytes, tenant: str) -> bytes:
    found = history_digests(turns, before, tenant)
    return found[-1].digest if found else before


def _range(
    request: CompactionRequest,
    turns: Sequence[Turn],
    sizes: Sequence[int],
    digest: bytes,
    earlier: SealedSummary | None,
    window: int,
    job_window: int,
    words: int,
) -> SummaryRange | None:
    """Returns the range of a job that reads the turns behind the earlier compaction, as many as fit; None: none do."""
    start = 0 if earlier is None else earlier.turns
    size = sum(sizes)
    before = 0 if earlier is None else estimate_text(earlier.text)
    prose = min(PROSE_TOKENS, round(PROSE_WINDOW_SHARE * job_window), max(round(PROSE_SHARE * (size + before)), 300))
    output = prose + min(REASONING_TOKENS, round(REASONING_WINDOW_SHARE * job_window))
    room = job_window * (1 - SPARE_SHARE) - output - _INSTRUCTIONS - before
    job = JobInput(turns, sizes)
    # Of a history that is too long, the newest turns are read: of the others the words, the calls and the errors stay.
    begin = bisect_left(range(len(turns)), True, start, key=lambda n: bool([*job.fitting(n, len(turns), room)]))
    if begin == len(turns):
        return None
    return SummaryRange(
        boundary=Boundary(len(turns), digest, answered=True),
        start=begin,
        previous=None if earlier is None else _record(request.tenant, earlier),
        generation=1,
        result_limit=next(job.fitting(begin, len(turns), room)),
        output_tokens=output,
        prose_tokens=prose,
        words_tokens=words,
        max_calls=MAX_CALLS,
        summary_limit=round(TOLERANCE * (prose + words + _LISTED)),
        covered_tokens=size,
        view_before=size,
        view_after=prose + words,
    )


def _record(tenant: str, summary: SealedSummary) -> SummaryRecord:
    """Returns an earlier compaction as the record that the next summary continues."""
    return SummaryRecord(
        tenant=tenant,
        digest=summary.digest,
        turns=summary.turns,
        root=b"",
        generation=1,
        parent=None,
        prompt_version=PROMPT_VERSION,
        created=summary.created,
        producer=Producer("", "", "", ""),
        cost=Cost(0, 0, True, 0, 0, 0),
        content=summary.content,
        known=summary.known,
        text=summary.text,
    )


def _task(request: CompactionRequest, covered: _Covered, summarised: SummaryRange) -> SummaryTask:
    history = msgspec.structs.replace(request.opened.conversation, turns=covered.turns)
    compress = request.model.route.compress
    return SummaryTask(
        request.store,
        request.tenant,
        Recalled(history, (), b"", SummaryIndex(), None),
        summarised,
        request.writer,
        request.request_id,
        compress.deadline_s,
        compress.json_schema,
    )


def _total(usage: UsageReport) -> UsageReport:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return msgspec.structs.replace(usage, total_tokens=prompt + completion)


def _notices(request: CompactionRequest, covered: _Covered, summary: SealedSummary, reason: str) -> Sequence[Notice]:
    now = estimate_text(summary.text)
    made = (
        f"a compaction stands for {summary.turns} messages, about {covered.tokens} tokens as {now}, "
        f"written by {request.writer.name!r}"
    )
    if covered.unread:
        made += f", which has not read the first {covered.unread} of them"
    if not reason:
        return (Notice("state", "added", "COMPACTION_MADE", made),)
    unwritten = (
        f"a compaction of {summary.turns} messages, about {covered.tokens} tokens as {now}, holds no summary by a "
        f"model: {reason}. It holds the user's words, the calls and the errors"
    )
    return (Notice("state", "added", "COMPACTION_UNWRITTEN", unwritten, level="warning"),)
