"""Turns -> atomic groups: what may only be kept or dropped together."""

from collections.abc import Sequence

import msgspec

from gateway.conversation.pairing import Pairing, is_calling, pair
from gateway.types import Turn


class Group(msgspec.Struct, frozen=True):
    """The turns `start` up to, not including, `stop`.

    `call_ids` are the calls made inside, in order; empty for a turn that stands alone. `results` are the positions
    of the tool turns inside. `follow_up` is the position of the assistant turn that speaks after the results.
    """

    start: int
    stop: int
    call_ids: tuple[str, ...] = ()
    results: tuple[int, ...] = ()
    follow_up: int | None = None


def groups(turns: Sequence[Turn]) -> tuple[Group, ...]:
    """Cut the turns into groups that cover all of them, in order and without overlap.

    A calling turn, all its results and the assistant turn right behind them (unless that one makes calls of its own)
    are one group; any other turn is a group of its own. Membership goes by id, not by neighbourhood: in a history
    that was not repaired, a group reaches to its last result, and groups that interlock are one.
    """
    ends = _last_results(pair(turns))
    found: list[Group] = []
    start = 0
    while start < len(turns):
        stop = start + 1
        reach = start
        while reach < stop:
            stop = max(stop, ends.get(reach, reach) + 1)
            reach += 1
        follow_up = stop if _follows(turns, start, stop) else None
        stop += follow_up is not None
        inside = range(start, stop)
        found.append(
            Group(
                start,
                stop,
                tuple(call.id for position in inside if is_calling(turns[position]) for call in turns[position].calls),
                tuple(position for position in inside if turns[position].role == "tool"),
                follow_up,
            )
        )
        start = stop
    return tuple(found)


def _last_results(pairing: Pairing) -> dict[int, int]:
    """For each turn that opens a bond, the farthest turn it is bound to (a result may even stand before its call)."""
    ends: dict[int, int] = {}
    for bonds in (pairing.answered, pairing.duplicates):
        for result, call in bonds.items():
            first, last = sorted((result.turn, call.turn))
            ends[first] = max(ends.get(first, first), last)
    for position in pairing.results:
        start = pairing.caller(position)
        if start is not None:
            ends[start] = max(ends.get(start, start), position)
    return ends


def _follows(turns: Sequence[Turn], start: int, stop: int) -> bool:
    """Whether the turn at `stop` is the assistant's word on the results that the group ends with."""
    if stop - start < 2 or stop >= len(turns) or turns[stop - 1].role != "tool":
        return False
    return turns[stop].role == "assistant" and not is_calling(turns[stop])
