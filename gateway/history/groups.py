"""Divides turns into atomic groups, which are kept or dropped as a whole."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter

import msgspec

from gateway.core.conversation import Turn
from gateway.history.pairing import Pairing, is_calling, is_paired, pair


class Group(msgspec.Struct, frozen=True):
    """The turns from `start` up to, not including, `stop`.

    `call_ids` are the calls made inside, in order; empty for a group of one plain turn. `results` are the positions of
    the tool turns inside. `follow_up` is the position of the assistant turn that follows the results.
    """

    start: int
    stop: int
    call_ids: tuple[str, ...] = ()
    results: tuple[int, ...] = ()
    follow_up: int | None = None


def groups(turns: Sequence[Turn]) -> tuple[Group, ...]:
    """Divides the turns into groups that cover all of them, in order and without overlap.

    A calling turn, all its results and the assistant turn directly after them (unless that one makes calls of its own)
    are one group; any other turn is a group of its own. Ids decide the membership, not positions: in a history that was
    not repaired, a group extends to its last result, and interlocking groups are one.
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
    """Returns the groups of the turns before `end`, from the groups of all turns.

    In a valid history a later turn can only extend a group, so the groups that end before `end` stay the same; in any
    other history they are computed again.
    """
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
    """Returns where a group that starts here stops: after the last turn that any turn inside is bound to."""
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
    """In a valid history a calling turn extends to the last of the tool turns directly after it."""
    ends: dict[int, int] = {}
    start = 0
    for position, turn in enumerate(turns):
        if turn.role == "tool":
            ends[start] = position
        else:
            start = position
    return ends


def _last_results(pairing: Pairing) -> dict[int, int]:
    """Maps each calling turn to the farthest turn bound to it (a result may even stand before its call)."""
    ends: dict[int, int] = {}
    for bonds in (pairing.answered, pairing.duplicates):
        for result, call in bonds.items():
            first, last = sorted((result.turn, call.turn))
            ends[first] = max(ends.get(first, first), last)
    return ends


def _follows(turns: Sequence[Turn], start: int, stop: int) -> bool:
    """Returns whether the turn at `stop` is the assistant's response to the results that end the group."""
    if stop - start < 2 or stop >= len(turns) or turns[stop - 1].role != "tool":
        return False
    return turns[stop].role == "assistant" and not is_calling(turns[stop])
