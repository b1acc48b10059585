"""Puts the same message of every stage into one row, so that a person sees what became of it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from gateway.core.conversation import Turn

# The message of each stage; None: it is not there.
Row: TypeAlias = list[Turn | None]


def aligned(stages: Sequence[Sequence[Turn]]) -> list[Row]:
    """Returns one row for each message of the first stage, in its order, and for each that a later stage wrote, behind
    the message that precedes it there."""
    width = len(stages)
    rows: list[Row] = [[turn, *[None] * (width - 1)] for turn in stages[0]] if stages else []
    for column, (_, after) in enumerate(pairwise(stages), 1):
        rows = _with_stage(rows, column, after, width)
    return rows


def _with_stage(rows: Sequence[Row], column: int, after: Sequence[Turn], width: int) -> list[Row]:
    """Returns the rows with the messages of one more stage."""
    places = [at for at, row in enumerate(rows) if row[column - 1] is not None]
    before = [turn for row in rows if (turn := row[column - 1]) is not None]
    became = _pairs(before, after)
    written: dict[int, list[Row]] = defaultdict(list)
    place = -1
    for position, turn in enumerate(after):
        if position in became:
            place = places[became[position]]
            rows[place][column] = turn
        else:
            written[place].append([turn if at == column else None for at in range(width)])
    return [*written[-1], *(one for at, row in enumerate(rows) for one in (row, *written.get(at, ())))]


def same(one: Turn, other: Turn) -> bool:
    """Returns whether two messages say the same."""
    return one is other or (one.role, one.name, one.blocks) == (other.role, other.name, other.blocks)


def _same_role(one: Turn, other: Turn) -> bool:
    return one.index is not None and one.role == other.role


def _same_index(one: Turn, other: Turn) -> bool:
    return one.index is not None


# What makes two messages of one index the same one, the surest first.
_TESTS: Final[tuple[Callable[[Turn, Turn], bool], ...]] = (same, _same_role, _same_index)


def _pairs(before: Sequence[Turn], after: Sequence[Turn]) -> Mapping[int, int]:
    """Returns for the positions of messages behind a stage those before it. Messages that the gateway wrote are the
    same only if they say the same."""
    found: dict[int, int] = {}
    free: dict[int | None, list[int]] = defaultdict(list)
    for position, turn in enumerate(before):
        free[turn.index].append(position)
    for test in _TESTS:
        for position, turn in enumerate(after):
            if position not in found:
                old = next((at for at in free[turn.index] if test(before[at], turn)), None)
                if old is not None:
                    found[position] = old
                    free[turn.index].remove(old)
    return found
