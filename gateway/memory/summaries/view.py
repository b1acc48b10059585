"""Finds what is sent, and its size: the view of a request, and the input of a job.

The view is the system text, the summary that applies, and the turns that are sent as they are. A job reads the turns
that a summary is to cover, their results cut to a limit.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Final, TypeAlias

from gateway.core.conversation import Conversation, Turn, is_system
from gateway.core.tokens import estimate_text, estimate_tools
from gateway.history.classify import system_prefix
from gateway.history.pinned import pinned_turns
from gateway.history.trim.truncate import shortened
from gateway.memory.summaries.summary import SummaryRecord


def repeated_turns(turns: Sequence[Turn], behind: int) -> tuple[int, ...]:
    """Returns the positions of the turns before `behind` that follow their summary once more, in order: the pinned
    turns of the running loop. An agent may work for long on one question, and a client writes notes of its own in the
    user's role meanwhile."""
    start = system_prefix(turns)
    return tuple([position for position in pinned_turns(turns).of_loop if start <= position < behind])


def running_round(turns: Sequence[Turn]) -> int:
    """Returns the position of the first turn that the model has not answered: a turn with calls and all behind it, or
    what follows an answer without calls. Where nothing follows, it is the model's own last turn."""
    last = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), None)
    if last is None:
        return 0
    if turns[last].calls or all(map(is_system, turns[last + 1 :])):
        return last
    return last + 1


def view_tokens(conversation: Conversation, sizes: Sequence[int], applied: SummaryRecord | None = None) -> int:
    """Returns the estimated size of what a request with this summary sends, before calibration. `sizes` are the
    estimates of the turns; those of turns that are not sent do not count."""
    turns = conversation.turns
    start = system_prefix(turns)
    behind = start if applied is None else start + applied.turns
    total = estimate_tools(conversation.tools) + sum(sizes[:start]) + sum(sizes[behind:])
    if applied is None:
        return total
    return total + estimate_text(applied.text) + sum(sizes[position] for position in repeated_turns(turns, behind))


# None: the results stay as they are.
ResultLimit: TypeAlias = int | None

# The limits of a result in characters, one tried after the other while the input is too large.
RESULT_LIMITS: Final[tuple[ResultLimit, ...]] = (None, 4_000, 1_000, 300)
# What is written around each turn, and how much longer a text becomes as JSON.
_LINE: Final = 16
_JSON_SHARE: Final = 1.15


class JobInput:
    """The turns of one conversation behind the system prefix, as a job would read them. `sizes` are their estimates."""

    def __init__(self, turns: Sequence[Turn], sizes: Sequence[int]) -> None:
        self._turns = turns
        self._sizes = sizes
        self._before: dict[ResultLimit, list[float]] = {}

    def fitting(self, start: int, stop: int, room: float) -> Iterator[ResultLimit]:
        """Yields the limits with which the turns from `start` up to `stop` fit into the room, the mildest first."""
        return (limit for limit in RESULT_LIMITS if self._size(start, stop, limit) <= room)

    def _size(self, start: int, stop: int, limit: ResultLimit) -> float:
        if limit not in self._before:
            self._before[limit] = sums(map(_size, self._turns, self._sizes, repeat(limit)))
        return self._before[limit][stop] - self._before[limit][start]


def sums(sizes: Iterable[float]) -> list[float]:
    """Returns for each position the sum of the sizes before it; one more for the end."""
    return [*accumulate(sizes, initial=0)]


def _size(turn: Turn, size: int, limit: ResultLimit) -> float:
    if limit is not None and turn.role == "tool":
        size = sum(estimate_text(shortened(result.text, limit)) for result in turn.results)
    return _JSON_SHARE * size + _LINE
