"""Pairs each tool result with the call that it answers.

Ids bind first, within a span: a result answers the latest call with its id that stands before it, so that a client may
give the first call of every round the same id. Calls and results that the ids leave open are bound by position, but
only among a calling turn and the tool turns directly after it, and only where one of the two sides has no id.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.core.conversation import ToolCall, ToolResult, Turn


class CallAt(NamedTuple):
    """A call's position: the position of its turn, and its ordinal among the turn's calls."""

    turn: int
    ordinal: int


class ResultAt(NamedTuple):
    """A result's position: the position of its turn, and its ordinal among the turn's results."""

    turn: int
    ordinal: int


class Pairing(msgspec.Struct, frozen=True):
    """The result of `pair`; all positions are positions in the given turns.

    `calls` and `results` hold those of every calling turn and every tool turn. `before` maps a tool turn to the turn
    before its run of tool turns (-1: none). `answers` maps a call to its result, `answered` is the inverse,
    `duplicates` maps a further result to its call. A result in neither is an orphan.
    """

    calls: Mapping[int, tuple[ToolCall, ...]]
    results: Mapping[int, tuple[ToolResult, ...]]
    before: Mapping[int, int]
    answers: Mapping[CallAt, ResultAt]
    answered: Mapping[ResultAt, CallAt]
    duplicates: Mapping[ResultAt, CallAt]

    def caller(self, position: int) -> int | None:
        """Returns the calling turn directly before the tool turn's run, if there is one."""
        before = self.before[position]
        return before if before in self.calls else None

    def call_of(self, place: ResultAt) -> ToolCall | None:
        """Returns the call, with its name and arguments, that a result answers; None for an orphan or a duplicate."""
        call = self.answered.get(place)
        return None if call is None else self.calls[call.turn][call.ordinal]


def is_calling(turn: Turn) -> bool:
    """Returns whether the turn is an assistant turn with calls."""
    return turn.role == "assistant" and bool(turn.calls)


def is_paired(turns: Sequence[Turn]) -> bool:
    """Returns whether every call is answered in place and by its own id.

    A fast check for valid histories, the usual case.
    """
    used: set[str] = set()
    unanswered: set[str] = set()
    for turn in turns:
        if turn.role == "tool":
            for block in turn.blocks:
                if type(block) is ToolResult:
                    if block.call_id not in unanswered:
                        return False
                    unanswered.remove(block.call_id)
        elif unanswered:
            return False
        elif turn.role == "assistant":
            for block in turn.blocks:
                if type(block) is ToolCall:
                    if not block.id or block.id in used:
                        return False
                    used.add(block.id)
                    unanswered.add(block.id)
    return not unanswered


def pair(turns: Sequence[Turn]) -> Pairing:
    """Binds results to calls, by id first, then by position where an id is missing. Linear in the number of blocks."""
    calls = {position: turn.calls for position, turn in enumerate(turns) if is_calling(turn)}
    results = {position: turn.results for position, turn in enumerate(turns) if turn.role == "tool"}
    binding = _Binding()
    for position in sorted((*calls, *results)):
        if position in calls:
            binding.open(position, calls[position])
        else:
            for ordinal, result in enumerate(results[position]):
                binding.answer(ResultAt(position, ordinal), result.call_id)
    binding.close_early()
    pairing = Pairing(calls, results, dict(_runs(turns)), binding.answers, binding.answered, binding.duplicates)
    binding.close_by_position(turns, pairing)
    return pairing


def _runs(turns: Sequence[Turn]) -> Iterator[tuple[int, int]]:
    before = -1
    for position, turn in enumerate(turns):
        if turn.role == "tool":
            yield position, before
        else:
            before = position


class _Binding:
    """The bindings made so far, and per id the calls of the latest turn that used it."""

    def __init__(self) -> None:
        self.answers: dict[CallAt, ResultAt] = {}
        self.answered: dict[ResultAt, CallAt] = {}
        self.duplicates: dict[ResultAt, CallAt] = {}
        self._spans: dict[str, list[CallAt]] = {}
        self._next: dict[str, int] = {}
        self._uses: dict[str, int] = {}
        self._early: dict[str, ResultAt] = {}

    def open(self, position: int, calls: tuple[ToolCall, ...]) -> None:
        """Adds a calling turn: each of its ids starts a new span; an id used twice in it opens two calls."""
        for ordinal, call in enumerate(calls):
            if not call.id:
                continue
            span = self._spans.get(call.id)
            if span is None or span[0].turn != position:
                span = self._spans[call.id] = []
                self._next[call.id] = 0
            span.append(CallAt(position, ordinal))
            self._uses[call.id] = self._uses.get(call.id, 0) + 1

    def answer(self, result: ResultAt, call_id: str) -> None:
        """Adds a result: binds it to the next call of its id's span, or marks it as duplicate or early."""
        span = self._spans.get(call_id)
        if span is None:
            if call_id:
                self._early.setdefault(call_id, result)
            return
        taken = self._next[call_id]
        if taken < len(span):
            self._next[call_id] = taken + 1
            self._bind(span[taken], result)
        else:
            self.duplicates[result] = span[-1]

    def close_early(self) -> None:
        """Binds an early result to the only call with its id, if no other result answers that call."""
        for call_id, result in self._early.items():
            if self._uses.get(call_id) == 1 and self._next[call_id] == 0:
                self._bind(self._spans[call_id][0], result)

    def close_by_position(self, turns: Sequence[Turn], pairing: Pairing) -> None:
        """Binds the results that are still open by position, inside each run.

        A result without an id takes the first open call, one with a foreign id the first open call that the client gave
        no id, one that only names a function the first such call of that function.
        """
        opened: dict[int, _OpenCalls] = {}
        for position, results in pairing.results.items():
            start = pairing.caller(position)
            if start is None:
                continue
            for ordinal, result in enumerate(results):
                place = ResultAt(position, ordinal)
                if place in self.answered or place in self.duplicates:
                    continue
                if start not in opened:
                    opened[start] = _OpenCalls(start, pairing.calls[start], self.answers)
                call = opened[start].bind(result, turns[position].name)
                if call is not None:
                    self._bind(call, place)

    def _bind(self, call: CallAt, result: ResultAt) -> None:
        self.answers[call] = result
        self.answered[result] = call


class _OpenCalls:
    """The unanswered calls of one turn, in order, with a second list of those to which the client gave no id."""

    def __init__(self, position: int, calls: tuple[ToolCall, ...], answers: Mapping[CallAt, ResultAt]) -> None:
        places = [CallAt(position, ordinal) for ordinal in range(len(calls))]
        self._answers = answers
        self._all = deque(place for place in places if place not in answers)
        self._nameless = deque(place for place in self._all if _has_no_id(calls[place.ordinal]))
        self._by_function: dict[str | None, deque[CallAt]] = {}
        for place in self._nameless:
            self._by_function.setdefault(calls[place.ordinal].name, deque()).append(place)

    def bind(self, result: ToolResult, function: str | None) -> CallAt | None:
        """Returns the call that a result of this function (None: unnamed) may answer by its position."""
        if result.id_derived:
            queue = self._by_function.get(function, deque())
        else:
            queue = self._nameless if result.call_id else self._all
        while queue:
            place = queue.popleft()
            if place not in self._answers:
                return place
        return None


def _has_no_id(call: ToolCall) -> bool:
    return call.id_derived or not call.id
