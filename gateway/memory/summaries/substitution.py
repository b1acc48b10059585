"""Puts a summary in the place of the turns that it covers, and shortens tool results where what is sent would exceed
the model's window, until a summary stands for them.

Results that the model has answered are shortened first, all to one limit: a quarter of the window, halved as often as
needed. The limit changes rarely while a history grows, so that the backend's prompt cache stays valid. Those of the
running round are shortened last, and keep a quarter of the window each at least.

A request that asks its provider to compact the conversation is left alone (`asks_for_compaction`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Json, Text, ToolResult, Turn, index_of
from gateway.core.notices import Notice
from gateway.core.tokens import UNCALIBRATED, Calibration, estimate_text, estimate_turn
from gateway.history.classify import system_prefix
from gateway.history.trim.truncate import shortened, with_text
from gateway.memory.summaries.summary import SummaryRecord
from gateway.memory.summaries.view import repeated_turns, running_round, view_tokens


class AppliedSummary(msgspec.Struct, frozen=True):
    """A summary that applies to a request: the record, and the very turns behind the digest that matched.

    `covered` are those of the repaired conversation, behind the system prefix.
    """

    record: SummaryRecord
    covered: tuple[Turn, ...]

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        """Returns the conversation with one user turn for the covered ones, and the notice of it.

        The turn stands behind the system prefix. It is no system turn, because what a tool returned must not gain
        authority, and no assistant turn, because several providers want the user to begin. What the agent works on
        follows it once more where it is covered (`repeated_turns`).

        The conversation comes back unchanged, with a warning, where its turns are not those behind the digest.
        """
        turns = conversation.turns
        start = system_prefix(turns)
        behind = start + len(self.covered)
        if turns[start:behind] != self.covered or behind >= len(turns):
            return conversation, (MISMATCH,)
        stands_in = Turn("user", (Text(self.record.text),), synthesized=True, summary=True)
        again = [turns[position] for position in repeated_turns(turns, behind)]
        sent = (*turns[:start], stands_in, *again, *turns[behind:])
        return msgspec.structs.replace(conversation, turns=sent), (self._notice(turns, start, behind - 1),)

    def _notice(self, turns: tuple[Turn, ...], first: int, last: int) -> Notice:
        record = self.record
        left_out = record.known.words_left_out
        unsaid = f"; the words of {left_out} of these messages had no room in it" if left_out else ""
        detail = (
            f"messages {index_of(turns, first)} to {index_of(turns, last)} are sent as a summary of generation "
            f"{record.generation}, about {record.cost.covered_tokens} tokens as {record.cost.summary_tokens}{unsaid}"
        )
        return Notice("state", "changed", "HISTORY_SUMMARIZED", detail, index=index_of(turns, first))


def applied_to(conversation: Conversation, record: SummaryRecord) -> AppliedSummary:
    """Returns the summary for a repaired conversation that has the record's digest.

    Raises ValueError for a conversation that is shorter than the record.
    """
    start = system_prefix(conversation.turns)
    covered = conversation.turns[start : start + record.turns]
    if len(covered) != record.turns:
        raise ValueError(f"the record covers {record.turns} turns, the conversation has {len(covered)}")
    return AppliedSummary(record, covered)


MISMATCH: Final = Notice(
    "state",
    "ignored",
    "SUMMARY_MISMATCH",
    "a stored summary was not used: it covers other messages than this request has",
    level="warning",
)


# The share of the window above which a request does not fit: the size is an estimate. And the share that it has once it
# was shortened: the rest is for the answer.
FULL_SHARE: Final = 0.95
ROOM_SHARE: Final = 0.9
# The share of the window that a result of the running round keeps at least.
RUNNING_SHARE: Final = 0.25
# The least limit of other results, in estimated tokens.
LEAST_LIMIT: Final = 64


class ResultLimits(msgspec.Struct, frozen=True):
    """The most tokens of a tool result, in estimates; None: it stays whole.

    `answered` is for results that the model has answered, `running` for the others. `view` is what would be sent
    without these limits, `window` the model's window, both in the model's tokens; `sent` is the estimate of what is
    sent with them.
    """

    answered: int
    running: int | None
    view: int
    window: int
    sent: int


def fit(
    conversation: Conversation,
    window: int,
    calibration: Calibration = UNCALIBRATED,
    applied: SummaryRecord | None = None,
) -> tuple[Sequence[int], ResultLimits | None]:
    """Returns the estimates of the turns of a repaired conversation, with 0 for those that its summary covers, and the
    limits with which what is sent fits the window (None: it does without, or none suffice)."""
    turns = conversation.turns
    start = system_prefix(turns)
    behind = start + (0 if applied is None else applied.turns)
    again = repeated_turns(turns, behind)
    sizes = [estimate_turn(turn) if n < start or n >= behind or n in again else 0 for n, turn in enumerate(turns)]
    view = view_tokens(conversation, sizes, applied)
    return sizes, result_limits(turns[behind:], view, window, calibration)


def result_limits(
    turns: Sequence[Turn], view: int, window: int, calibration: Calibration = UNCALIBRATED
) -> ResultLimits | None:
    """Returns the limits with which what is sent fits the window. None: it fits as it is, or none suffice.

    `turns` are those that are sent as they are, `view` the estimate of everything that is sent, `window` in tokens of
    the model.
    """
    in_estimates = window / calibration.ratio
    if view <= FULL_SHARE * in_estimates:
        return None
    excess = view - ROOM_SHARE * in_estimates
    begin = running_round(turns)
    answered = [*_sizes(turns[:begin])]
    limit, saved = _answered_limit(answered, excess, in_estimates)
    running: int | None = None
    if saved < excess:
        sizes = [*_sizes(turns[begin:])]
        running = max(_level(sizes, excess - saved), int(RUNNING_SHARE * in_estimates))
        saved += _saved(sizes, running)
    if view - saved > FULL_SHARE * in_estimates:
        return None
    return ResultLimits(limit, running, calibration.tokens(view), window, view - saved)


def shortenable(turns: Sequence[Turn], window: float) -> int:
    """Returns the tokens by which the results of the running round may be shortened; all in estimates."""
    return _saved(_sizes(turns[running_round(turns) :]), int(RUNNING_SHARE * window))


def _answered_limit(sizes: Sequence[int], excess: float, window: float) -> tuple[int, int]:
    limit = int(RUNNING_SHARE * window)
    while (saved := _saved(sizes, limit)) < excess and limit // 2 >= LEAST_LIMIT:
        limit //= 2
    return limit, saved


def _level(sizes: Sequence[int], excess: float) -> int:
    """Returns the limit above which results have this excess in all, 0 where they have less."""
    total = 0
    largest = sorted(sizes, reverse=True)
    for count, size in enumerate(largest, 1):
        total += size
        below = largest[count] if count < len(largest) else 0
        if total - count * below >= excess:
            return int((total - excess) / count)
    return 0


def _saved(sizes: "Sequence[int] | Iterator[int]", limit: int) -> int:
    return sum(size - limit for size in sizes if size > limit)


def _sizes(turns: Sequence[Turn]) -> Iterator[int]:
    """Yields the estimates of the texts of all results."""
    return (estimate_text(result.text) for turn in turns if turn.role == "tool" for result in turn.results)


class FittedHistory(msgspec.Struct, frozen=True):
    """What puts into a request the summary of its oldest turns, and shortens its results; either may be None."""

    summary: AppliedSummary | None
    limits: ResultLimits | None = None

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        """Returns the conversation as it is sent, and the notices of the changes."""
        notices: tuple[Notice, ...] = ()
        if self.summary is not None:
            conversation, notices = self.summary.substitute(conversation)
        if self.limits is None:
            return conversation, notices
        turns = _fitted(conversation.turns, self.limits)
        cut = [n for n, turn in enumerate(turns) if turn is not conversation.turns[n]]
        if not cut:
            return conversation, notices
        notice = _notice(conversation.turns, turns, cut, self.limits)
        return msgspec.structs.replace(conversation, turns=turns), (*notices, notice)


def _fitted(turns: tuple[Turn, ...], limits: ResultLimits) -> tuple[Turn, ...]:
    begin = running_round(turns)
    return tuple(
        _shortened(turn, limit)
        if turn.role == "tool" and (limit := limits.answered if n < begin else limits.running) is not None
        else turn
        for n, turn in enumerate(turns)
    )


def _shortened(turn: Turn, limit: int) -> Turn:
    blocks = tuple(_short(block, limit) if isinstance(block, ToolResult) else block for block in turn.blocks)
    return turn if all(map(_same, blocks, turn.blocks)) else turn.changed(*blocks)


def _same(one: object, other: object) -> bool:
    return one is other


def _short(result: ToolResult, limit: int) -> ToolResult:
    """Returns the result with a text of this many estimated tokens at most: its beginning, its end and a marker."""
    text = result.text
    size = estimate_text(text)
    room = len(text)
    while size > limit and room:
        room = min(int(room * limit / size), room - 1)
        short = shortened(text, room)
        size = estimate_text(short)
    return result if room == len(text) else with_text(result, short)


def _notice(turns: tuple[Turn, ...], fitted: tuple[Turn, ...], cut: Sequence[int], limits: ResultLimits) -> Notice:
    before, after = (sum(len(result.text) for n in cut for result in one[n].results) for one in (turns, fitted))
    first, last = index_of(turns, cut[0]), index_of(turns, cut[-1])
    detail = (
        f"the tool results of messages {first} to {last} are sent shortened ({before} characters of {len(cut)} as "
        f"{after}): the request would have about {limits.view} tokens, the model's window has {limits.window}"
    )
    return Notice("state", "shortened", "TOOL_RESULTS_FITTED", detail, index=first, level="warning")


_FIELD: Final = "context_management"


def asks_for_compaction(conversation: Conversation) -> bool:
    """Returns whether the client's `context_management` asks for a compaction.

    OpenAI's form (Responses) is a list of entries, `{"type": "compaction", "compact_threshold": ...}`. Anthropic's is
    an object of `edits`, of which `compact_20260112` compacts; those that only clear old results or thinking do not.
    """
    fields = (conversation.params, conversation.source.value if conversation.source is not None else {})
    return any(_compacts(entry) for one in fields for entry in _entries(one.get(_FIELD)))


def _entries(field: Json) -> list[Json]:
    if isinstance(field, dict):
        field = field.get("edits")
    return field if isinstance(field, list) else []


def _compacts(entry: Json) -> bool:
    kind = entry.get("type") if isinstance(entry, dict) else None
    return isinstance(kind, str) and kind.partition("_")[0] in ("compact", "compaction")
