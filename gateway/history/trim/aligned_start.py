"""Moves a requested cut to the nearest cut that splits no atomic group."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from gateway.history.groups import Group


def aligned_start(groups: Sequence[Group], raw_start: int, protected: int) -> int:
    """Returns the start of the kept tail, for a requested start of `raw_start` and `protected` leading turns.

    The first `protected` turns stay in any case. A cut inside a group moves back to the group's start: a legal boundary
    has priority over an exact length. A protected prefix that ends inside a group extends to the group's end, so that
    the pieces on both sides of the cut are whole.
    """
    end = groups[-1].stop if groups else 0
    prefix = _group_at(groups, protected - 1).stop if 0 < protected < end else protected
    start = max(raw_start, prefix)
    return _group_at(groups, start).start if prefix < start < end else start


def _group_at(groups: Sequence[Group], position: int) -> Group:
    return groups[bisect_right(groups, position, key=attrgetter("start")) - 1]
