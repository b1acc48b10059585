"""Decides which turns a summary should cover: whole groups, oldest first, until what is sent fits its target.

Every limit is judged on the view, which is what would be sent: system text, tools, the summary that applies already and
the turns behind it. Judged on the whole history, a conversation that was over the limit once would be summarised again
for each response.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Conversation, Turn, is_system
from gateway.core.tokens import UNCALIBRATED, Calibration, estimate_text, estimate_tools
from gateway.history.classify import system_prefix
from gateway.memory.history_digest import Boundary
from gateway.memory.summaries.known_facts import CALLS_OF_AN_ERROR
from gateway.memory.summaries.substitution import FULL_SHARE, shortenable
from gateway.memory.summaries.summary import SummaryRecord
from gateway.memory.summaries.view import JobInput, ResultLimit, repeated_turns, running_round, sums, view_tokens

# A summary that saves less costs more than it is worth, unless the window is small.
LEAST_GAIN_TOKENS: Final = 4_000
# The longest prose that is expected of the model, as a count, a share of the covered turns and one of the window.
PROSE_TOKENS: Final = 2_000
PROSE_SHARE: Final = 0.5
PROSE_WINDOW_SHARE: Final = 0.125
# What a model may think before it writes, as a count and a share of the window: it counts for the same limit.
REASONING_TOKENS: Final = 4_000
REASONING_WINDOW_SHARE: Final = 0.125
# How much longer than expected a text may be, because the expectation is an estimate.
TOLERANCE: Final = 1.5
# The share of the window for the user's own words, and the most calls that are listed.
WORDS_SHARE: Final = 0.05
MAX_CALLS: Final = 40
WINDOW_OF_A_CALL: Final = 1_000
# Summaries of summaries lose details: each fourth is drawn from the turns themselves.
FROM_ORIGINALS: Final = 4
# A cut moves forward to a user's turn that begins within this share of what is covered.
USER_TURN_SHARE: Final = 0.1
# The share of the window that stays free beside the job's input and output, because both are estimates.
SPARE_SHARE: Final = 0.05
# The job's instructions; a listed call or error; the lines around a summary.
_INSTRUCTIONS: Final = 800
_CALL_ENTRY: Final = 30
_FRAME: Final = 100

NoSummaryReason: TypeAlias = Literal["below", "futile", "small", "input"]


class CompressLimits(msgspec.Struct, frozen=True):
    """The limits of one model, as shares of its `window`, which is in tokens.

    - `trigger`: the size of the view above which a summary is wanted; `target`: the size that it should reach.
    - `tail`: what stays at least beside the newest group.
    - `least_gain`: what a summary must save at least; and never less than 4,000 tokens or, of a small window, half of
      what lies between trigger and target.
    - `job_window`: the window of the model that writes the summary, in tokens; None: the same.
    """

    window: int
    trigger: float = 0.6
    target: float = 0.3
    tail: float = 0.15
    least_gain: float = 0.15
    job_window: int | None = None


class SummaryRange(msgspec.Struct, frozen=True):
    """The turns that a job would summarise, and its limits. Token counts are expected counts of the model at hand, but
    `words_tokens` and `summary_limit`, which are estimates.

    The summary covers the turns before `boundary`. The job reads those from `start` on (counted behind the system
    prefix, as the boundary's), and the summary of those before, `previous`. `result_limit`: the characters to which it
    sees results shortened, `output_tokens` the limit of its answer, with what the model thinks before; `prose_tokens`
    is the part of it for the summary itself. `summary_limit` is the largest estimate of a summary's text that is as
    short as expected and still gains enough. `covered_tokens` is the size of all covered turns.
    """

    boundary: Boundary
    start: int
    previous: SummaryRecord | None
    generation: int
    result_limit: ResultLimit
    output_tokens: int
    prose_tokens: int
    words_tokens: int
    max_calls: int
    summary_limit: int
    covered_tokens: int
    view_before: int
    view_after: int


class NoSummary(msgspec.Struct, frozen=True):
    """Why no summary is wanted, and the size of the view in tokens.

    - `below`: the view is within the trigger.
    - `futile`: what a summary cannot replace is over the trigger; `floor` is its size in tokens.
    - `small`: a summary would save less than the least gain.
    - `input`: not even the fewest turns that would be worth it fit into the job's window.
    """

    reason: NoSummaryReason
    view: int
    floor: int | None = None


def plan_range(
    conversation: Conversation,
    boundaries: Sequence[Boundary],
    sizes: Sequence[int],
    limits: CompressLimits,
    calibration: Calibration = UNCALIBRATED,
    applied: SummaryRecord | None = None,
) -> SummaryRange | NoSummary:
    """Decides which turns of a repaired conversation the next summary covers, if any.

    `boundaries` are those of its `history_digests`, `sizes` the estimates of all its turns (`estimate_turn`), `applied`
    the summary that this request uses. Pure: the same history gives the same boundary.
    """
    planner = _Planner(conversation, sizes, limits, calibration, applied)
    if planner.view <= planner.tokens(limits.trigger):
        return NoSummary("below", planner.model_tokens(planner.view))
    allowed = planner.allowed(boundaries)
    if planner.floor(allowed) > planner.tokens(limits.trigger):
        # A large round stands among the newest turns: what is sent fits the window, though less than the tail is left.
        allowed = planner.whole(boundaries)
    floor = planner.floor(allowed)
    if floor > planner.tokens(limits.trigger) and not planner.fits_then(floor):
        return NoSummary("futile", planner.model_tokens(planner.view), planner.model_tokens(floor))
    worthwhile = [boundary for boundary in allowed if planner.gain(boundary) >= planner.least_gain]
    if not worthwhile:
        return NoSummary("small", planner.model_tokens(planner.view))
    wanted = planner.at_user_turn(planner.first_at_target(worthwhile), worthwhile)
    found = planner.fitted([boundary for boundary in worthwhile if boundary.turns <= wanted.turns])
    return found or NoSummary("input", planner.model_tokens(planner.view))


class _Planner:
    """Sizes are estimates; the limits, which are in the model's tokens, are converted to estimates."""

    def __init__(
        self,
        conversation: Conversation,
        sizes: Sequence[int],
        limits: CompressLimits,
        calibration: Calibration,
        applied: SummaryRecord | None,
    ) -> None:
        start = system_prefix(conversation.turns)
        self._turns = conversation.turns[start:]
        self._sizes = sizes[start:]
        self._limits = limits
        self._ratio = calibration.ratio
        self._applied = applied
        self._fixed = sum(sizes[:start]) + estimate_tools(conversation.tools)
        self._before = sums(self._sizes)
        self._words = sums(size * _has_words(turn) for turn, size in zip(self._turns, self._sizes, strict=True))
        self._calls = sums(len(turn.calls) for turn in self._turns)
        self._repeated = [n - start for n in repeated_turns(conversation.turns, len(conversation.turns))]
        self.view = view_tokens(conversation, sizes, applied)
        self._input = JobInput(self._turns, self._sizes)
        span = self.tokens(limits.trigger - limits.target)
        self.least_gain = max(self.tokens(limits.least_gain), min(LEAST_GAIN_TOKENS / self._ratio, span / 2))
        self._max_calls = min(MAX_CALLS, limits.window // WINDOW_OF_A_CALL)

    def tokens(self, share: float) -> float:
        """Returns a share of the window in estimates."""
        return share * self._limits.window / self._ratio

    def model_tokens(self, estimated: float) -> int:
        return round(estimated * self._ratio)

    def whole(self, boundaries: Sequence[Boundary]) -> list[Boundary]:
        """Returns the boundaries behind the applied summary that leave what the model has not answered, and the newest
        group."""
        newest = running_round(self._turns)
        covered = 0 if self._applied is None else self._applied.turns
        return [one for one in boundaries if covered < one.turns <= newest and not one.compacted]

    def allowed(self, boundaries: Sequence[Boundary]) -> list[Boundary]:
        """Returns those of them that also leave the tail."""
        tail = self.tokens(self._limits.tail)
        return [one for one in self.whole(boundaries) if self._behind(one.turns) >= tail]

    def floor(self, allowed: Sequence[Boundary]) -> float:
        """Returns the size of the view after a summary of as much as is allowed."""
        return self.view_behind(allowed[-1]) if allowed else self.view

    def fits_then(self, floor: float) -> bool:
        """Returns whether the view exceeds the window, and no longer does with this floor, of which the results of the
        running round may be shortened."""
        full = self.tokens(FULL_SHARE)
        return self.view > full >= floor - shortenable(self._turns, self.tokens(1.0))

    def view_behind(self, boundary: Boundary) -> float:
        """Returns the size of the view after a summary of the turns before the boundary."""
        return self._fixed + self._summary(boundary) + self._kept(boundary.turns)

    def gain(self, boundary: Boundary) -> float:
        return self.view - self.view_behind(boundary)

    def first_at_target(self, allowed: Sequence[Boundary]) -> Boundary:
        target = self.tokens(self._limits.target)
        return next((boundary for boundary in allowed if self.view_behind(boundary) <= target), allowed[-1])

    def at_user_turn(self, wanted: Boundary, allowed: Sequence[Boundary]) -> Boundary:
        """Returns the next boundary at which a user's turn begins, if it is near; else the wanted one."""
        farthest = (1 + USER_TURN_SHARE) * self._covered(wanted)
        near = (one for one in allowed if one.turns >= wanted.turns and self._covered(one) <= farthest)
        return next((one for one in near if _is_asked(self._turns[one.turns])), wanted)

    def fitted(self, worthwhile: Sequence[Boundary]) -> SummaryRange | None:
        """Returns the largest range whose input fits into the job's window; rather shortens results than covers less.

        Where the originals do not fit, the generation that begins with them continues the previous summary instead.
        """
        for boundary in reversed(worthwhile):
            for start, previous in self._sources():
                for limit in self._input.fitting(start, boundary.turns, self._room(boundary, previous)):
                    return self._range(boundary, start, previous, limit)
        return None

    def _sources(self) -> list[tuple[int, SummaryRecord | None]]:
        if self._applied is None:
            return [(0, None)]
        continued = [(self._applied.turns, self._applied)]
        return [(0, None), *continued] if self._generation % FROM_ORIGINALS == 0 else [*continued]

    @property
    def _generation(self) -> int:
        return 1 if self._applied is None else self._applied.generation + 1

    def _room(self, boundary: Boundary, previous: SummaryRecord | None) -> float:
        """Returns the size that the job's window leaves for turns, in estimates."""
        window = self._limits.job_window or self._limits.window
        room = (window * (1 - SPARE_SHARE) - self._output(boundary)) / self._ratio - _INSTRUCTIONS
        return room if previous is None else room - estimate_text(previous.text)

    def _range(
        self, boundary: Boundary, start: int, previous: SummaryRecord | None, limit: ResultLimit
    ) -> SummaryRange:
        return SummaryRange(
            boundary=boundary,
            start=start,
            previous=previous,
            generation=self._generation,
            result_limit=limit,
            output_tokens=self._output(boundary),
            prose_tokens=self._prose(boundary),
            words_tokens=round(self.tokens(WORDS_SHARE)),
            max_calls=self._max_calls,
            summary_limit=round(self._summary_limit(boundary)),
            covered_tokens=self.model_tokens(self._covered(boundary)),
            view_before=self.model_tokens(self.view),
            view_after=self.model_tokens(self.view_behind(boundary)),
        )

    def _kept(self, covered: int) -> float:
        """Returns the size of the turns behind the covered ones, with those of them that are sent in any case."""
        return self._behind(covered) + sum(self._sizes[n] for n in self._repeated if n < covered)

    def _behind(self, covered: int) -> float:
        return self._before[-1] - self._before[covered]

    def _covered(self, boundary: Boundary) -> float:
        return self._before[boundary.turns]

    def _output(self, boundary: Boundary) -> int:
        window = self._limits.job_window or self._limits.window
        return self._prose(boundary) + min(REASONING_TOKENS, round(REASONING_WINDOW_SHARE * window))

    def _prose(self, boundary: Boundary) -> int:
        # The model of a small job window has no room for more, beside what it reads.
        of_window = round(PROSE_WINDOW_SHARE * min(self._limits.window, self._limits.job_window or self._limits.window))
        return min(PROSE_TOKENS, of_window, self.model_tokens(PROSE_SHARE * self._covered(boundary)))

    def _summary_limit(self, boundary: Boundary) -> float:
        expected = self._summary(boundary)
        return min(TOLERANCE * expected, expected + self.gain(boundary) - self.least_gain)

    def _summary(self, boundary: Boundary) -> float:
        """Returns the size that the text of a summary is expected to have at most."""
        known = min(self._words[boundary.turns], self.tokens(WORDS_SHARE))
        calls = min(self._calls[boundary.turns], self._max_calls)
        known += _CALL_ENTRY * (calls + calls / CALLS_OF_AN_ERROR)
        return self._prose(boundary) / self._ratio + known + _FRAME


def _has_words(turn: Turn) -> bool:
    return is_system(turn) or _is_asked(turn)


def _is_asked(turn: Turn) -> bool:
    return turn.role == "user" and not turn.synthesized
