"""Estimates how large the turns are in the job's request, and to how many characters their results must be cut."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Final, TypeAlias

from gateway.core.conversation import Turn
from gateway.core.tokens import estimate_text
from gateway.history.trim.truncate import shortened

# None: the results stay as they are.
ResultLimit: TypeAlias = int | None

# The limits of a result in characters, one tried after the other while the input is too large.
RESULT_LIMITS: Final[tuple[ResultLimit, ...]] = (None, 4_000, 1_000, 300)
# What is written around each turn, and how much longer a text becomes as JSON.
_LINE: Final = 16
_JSON_SHARE: Final = 1.15


class JobInput:
    """The turns of one conversation behind the system run, as a job would read them. `sizes` are their estimates."""

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
