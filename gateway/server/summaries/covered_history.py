"""Finds what a compaction covers: the messages of a history, what is known of them without a model, and how much of
them the model can read that writes the summary."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text, estimate_turn
from gateway.history.classify import system_prefix
from gateway.history.own_state import with_own_state
from gateway.history.prepare import repaired
from gateway.memory.history_digest import Boundary, history_digests
from gateway.memory.summaries import sealed_summary
from gateway.memory.summaries.job_request import PROMPT_VERSION
from gateway.memory.summaries.known_facts import joined, known_of, unsaid, with_fewer_words
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
from gateway.memory.summaries.sealed_summary import SealedSummary, speakers_of, stand_ins
from gateway.memory.summaries.summary import Cost, Known, Producer, SummaryContent, SummaryRecord, summary_text
from gateway.memory.summaries.view import JobInput
from gateway.server.summaries.opened_history import Opened

# The window of a model whose settings name none. A client compacts when its history nearly fills the window that it
# knows of.
ASSUMED_WINDOW: Final = 128_000
# A history of more tokens than this share of it says that the window is larger.
_FILLED: Final = 0.9
# The most tokens of the user's own words in a sealed summary, which has room for a limited number of bytes, and the
# most messages that they are of.
MOST_WORDS: Final = 24_000
MOST_MESSAGES: Final = 500
_INSTRUCTIONS: Final = 800
_LEAST_PROSE: Final = 300
# How much longer the items of a summary become in the request of the next one.
_AS_JSON: Final = 1.5

NOTHING: Final = SummaryContent()


class CoveredHistory(msgspec.Struct, frozen=True):
    """What a compaction covers: the repaired history, its turns (empty ones for those that the compaction before,
    `earlier`, stands for), what is known of them without a model, and their size in tokens.

    `range` is what the job reads of them (None: nothing is new, or nothing fits into its window). `unreadable` counts
    the compactions of a provider among the turns, which the `notices` tell.
    """

    history: Conversation
    turns: tuple[Turn, ...]
    digest: bytes
    known: Known
    tokens: int
    earlier: SealedSummary | None
    range: SummaryRange | None
    unreadable: int
    notices: tuple[Notice, ...]

    @property
    def passed_over(self) -> int:
        """The number of turns that have no room in the window of the job."""
        return 0 if self.range is None else self.range.start - self._covered_before

    @property
    def is_new(self) -> bool:
        """Whether there are turns that no earlier compaction covers."""
        return len(self.turns) > self._covered_before

    @property
    def written_before(self) -> SummaryContent:
        """What a model wrote of the earlier turns. It still holds, and cites their numbers."""
        return NOTHING if self.earlier is None else self.earlier.content

    @property
    def speakers(self) -> str:
        """The letter of each turn's speaker."""
        return speakers_of(self.turns)

    @property
    def _covered_before(self) -> int:
        return 0 if self.earlier is None else self.earlier.turns


def covered_history(
    opened: Opened, tenant: str, policy: Policy, window: int | None, job_window: int | None
) -> CoveredHistory:
    """Returns what a compaction of a history covers. `window` is the context of its model in tokens, and `job_window`
    that of the one that writes the summary; None: not known.

    Raises InvalidRequest for a history that no backend could be sent, and for one of too many messages.
    """
    history = repaired(opened.conversation, policy)
    # A provider's own compaction is a note: whoever writes the summary could not read it either.
    readable, lost = with_own_state(history, "", passes=False)
    notices = tuple(notice for notice in lost if notice.rule == "COMPACTION_UNREADABLE")
    turns = readable.turns[system_prefix(readable.turns) :]
    earlier = opened.summary
    fresh = turns if earlier is None else _fresh(turns, earlier)
    stands = stand_ins("" if earlier is None else earlier.speakers)
    covered = (*stands, *fresh)
    if len(covered) > sealed_summary.MOST_TURNS:
        most = sealed_summary.MOST_TURNS
        raise InvalidRequest(
            f"The history has {len(covered)} messages; a compaction stands for {most} messages at most."
        )
    digest = _digest(fresh, b"" if earlier is None else earlier.digest, tenant)
    sizes = [estimate_turn(turn) for turn in covered]
    size = sum(sizes)
    window = window or max(ASSUMED_WINDOW, round(size / _FILLED))
    words = min(round(WORDS_SHARE * window), MOST_WORDS)
    own = known_of(covered, words, MAX_CALLS)
    known = own
    if earlier is not None:
        spoken = (earlier.speakers + "a").index("a")
        known = joined(earlier.known, own, spoken, words, MAX_CALLS)
    known = with_fewer_words(known, MOST_MESSAGES)
    job = _Job(tenant, covered, sizes, digest, earlier, own, words, job_window or window)
    before = 0 if earlier is None else earlier.unreadable
    return CoveredHistory(history, covered, digest, known, size, earlier, job.range(), before + _count(fresh), notices)


def _fresh(turns: Sequence[Turn], earlier: SealedSummary) -> tuple[Turn, ...]:
    """Returns the turns that an earlier compaction does not cover. Clients keep messages of the user before one that
    holds them already."""
    place = next((position for position, turn in enumerate(turns) if turn.summary), 0)
    return (*unsaid(turns[:place], earlier.known.words), *[turn for turn in turns[place:] if not turn.summary])


def _count(turns: Sequence[Turn]) -> int:
    """Returns the number of notes that stand for a provider's own compaction."""
    return sum(turn.compaction and turn.synthesized for turn in turns)


def _digest(turns: Sequence[Turn], before: bytes, tenant: str) -> bytes:
    found = history_digests(turns, before, tenant)
    return found[-1].digest if found else before


class _Job(msgspec.Struct, frozen=True):
    """The job that reads the covered turns, and the size of each."""

    tenant: str
    turns: Sequence[Turn]
    sizes: Sequence[int]
    digest: bytes
    earlier: SealedSummary | None
    known: Known
    words: int
    window: int

    def range(self) -> SummaryRange | None:
        """Returns the range of a job that reads the turns behind the earlier compaction, as many as fit; None: none
        do."""
        earlier, turns, window = self.earlier, self.turns, self.window
        start = 0 if earlier is None else earlier.turns
        size = sum(self.sizes)
        before = 0
        if earlier is not None:
            before = round(_AS_JSON * estimate_text(summary_text(earlier.turns, earlier.content, Known())))
        prose = min(PROSE_TOKENS, round(PROSE_WINDOW_SHARE * window))
        prose = min(prose, max(round(PROSE_SHARE * (size + before)), _LEAST_PROSE))
        output = prose + min(REASONING_TOKENS, round(REASONING_WINDOW_SHARE * window))
        room = window * (1 - SPARE_SHARE) - output - _INSTRUCTIONS - before
        job = JobInput(turns, self.sizes)
        # Of a history that is too long, the newest turns are read: of the others the words, the calls and the errors
        # stay.
        begin = bisect_left(range(len(turns)), True, start, key=lambda n: bool([*job.fitting(n, len(turns), room)]))
        if begin == len(turns):
            return None
        listed = estimate_text(summary_text(len(turns), NOTHING, self.known))
        return SummaryRange(
            boundary=Boundary(len(turns), self.digest, answered=True),
            start=begin,
            previous=None if earlier is None else _record(self.tenant, earlier),
            generation=1,
            result_limit=next(job.fitting(begin, len(turns), room)),
            output_tokens=output,
            prose_tokens=prose,
            words_tokens=self.words,
            max_calls=MAX_CALLS,
            summary_limit=round(TOLERANCE * (prose + listed)),
            covered_tokens=size,
            view_before=size,
            view_after=prose + listed,
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
