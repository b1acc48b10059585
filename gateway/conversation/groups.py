"""Turns -> atomic groups: what may only be kept or dropped together."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter

import msgspec

from gateway.conversation.pairing import Pairing, is_calling, is_paired, pair
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
    ends = _runs(turns) if is_paired(turns) else _last_results(pair(turns))
    found: list[Group] = []
    start = 0
    while start < len(turns):
        stop = _reach(ends, start)
        if stop == start + 1 and not is_calling(turns[start]):
            found.append(Group(start, stop, results=(start,) if turns[start].role == "tool" else ()))
        else:
            found.append(_bound(turns, start, stop))
        start = found[-1].stop
    return tuple(found)


def groups_before(found: Sequence[Group], turns: Sequence[Turn], end: int) -> tuple[Group, ...]:
    """The groups of the turns before `end`, from the groups of all turns. In a sound history what comes later only
    makes a group longer, so those that end before it are the same; in any other they are made anew."""
    if not is_paired(turns):
        return groups(turns[:end])
    count = bisect_right(found, end, key=attrgetter("stop"))
    whole = tuple(found[:count])
    if count == len(found) or found[count].start >= end:
        return whole
    if found[count].follow_up == end:
        return (*whole, msgspec.structs.replace(found[count], stop=end, follow_up=None))
    return groups(turns[:end])


def _reach(ends: Mapping[int, int], start: int) -> int:
    """Where a group that starts here stops: behind the last turn that any turn inside is bound to."""
    stop = start + 1
    while start < stop:
        stop = max(stop, ends.get(start, start) + 1)
        start += 1
    return stop


def _bound(turns: Sequence[Turn], start: int, stop: int) -> Group:
    follow_up = stop if _follows(turns, start, stop) else None
    inside = turns[start:stop]
    return Group(
        start,
        stop if follow_up is None else stop + 1,
        tuple(call.id for turn in inside if turn.role == "assistant" for call in turn.calls),
        tuple(position for position, turn in enumerate(inside, start) if turn.role == "tool"),
        follow_up,
    )


def _runs(turns: Sequence[Turn]) -> dict[int, int]:
    """In a sound history a calling turn reaches to the last of the tool turns directly after it."""
    ends: dict[int, int] = {}
    start = 0
    for position, turn in enumerate(turns):
        if turn.role == "tool":
            ends[start] = position
        else:
            start = position
    return ends


def _last_results(pairing: Pairing) -> dict[int, int]:
    """For each turn that opens a bond, the farthest turn it is bound to (a result may even stand before its call)."""
    ends: dict[int, int] = {}
    for bonds in (pairing.answered, pairing.duplicates):
        for result, call in bonds.items():
            first, last = sorted((result.turn, call.turn))
            ends[first] = max(ends.get(first, first), last)
    return ends


def _follows(turns: Sequence[Turn], start: int, stop: int) -> bool:
    """Whether the turn at `stop` is the assistant's word on the results that the group ends with."""
    if stop - start < 2 or stop >= len(turns) or turns[stop - 1].role != "tool":
        return False
    return turns[stop].role == "assistant" and not is_calling(turns[stop])
