"""Decides for every turn whether it is kept, kept without the body of its results, or left out.

Pinned, regardless of the limits: the leading system turns, a summary behind them, the last user turn, and the newest
group with everything after it. All other turns are removed oldest first and by whole groups, so that no call loses its
result and no result its call. A limit is a target: the kept part begins at the group in which the exact cut would fall.

Where a provider requires the user to begin, the user turn of the oldest kept group stays as well.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Turn
from gateway.core.policy import Policy
from gateway.history.classify import classify, is_system
from gateway.history.groups import Group, aligned_start, groups
from gateway.history.trim.truncate import is_elided

Fate = Literal["keep", "elide", "drop"]


class Count(msgspec.Struct, frozen=True):
    """The total count, and the count of those that are kept."""

    before: int
    after: int


class Plan(msgspec.Struct, frozen=True):
    """The decision for every turn, with the figures behind it.

    It holds the counts of each limit that was exceeded (None: it was not), the groups, where they were needed, and the
    user turn that was kept beyond the limits (None: no need). `summarized`: older turns are sent as a summary.
    """

    fates: tuple[Fate, ...]
    results: Count | None
    history: Count | None
    groups: tuple[Group, ...] | None
    opening: int | None = None
    summarized: bool = False


def plan(turns: Sequence[Turn], policy: Policy, known: tuple[Group, ...] | None = None) -> Plan:
    """Decides which turns stay within the policy's limits. Accepts their groups where they are known already.

    `max_tool_results` counts the results that still have their body. `max_history_messages` counts every turn but the
    leading system turns, the last user turn (it is the question) and the results after it (they are counted as
    results). Where the user must begin, the user turn that begins is not counted either. A summary never is.
    """
    if _within(turns, policy):
        kept: Fate = "keep"
        return Plan((kept,) * len(turns), None, None, known)
    planner = _Planner(turns, policy, known)
    limits_results = planner.limit_results(policy.max_tool_results)
    limits_history = planner.limit_history(policy.max_history_messages)
    opening = planner.keep_opening() if policy.profile.first_turn == "user" else None
    history = planner.history_count(opening) if limits_history else None
    return Plan(
        tuple(planner.fates),
        planner.result_count() if limits_results else None,
        # The opening turn may be the only removed turn.
        None if history is None or history.after == history.before else history,
        planner.known,
        opening,
        planner.summarized,
    )


def _within(turns: Sequence[Turn], policy: Policy) -> bool:
    """Returns whether all turns and all results are within the limits: most conversations need no plan."""
    results, history = policy.max_tool_results, policy.max_history_messages
    if history is not None and len(turns) > history:
        return False
    return results is None or sum([len(turn.results) for turn in turns if turn.role == "tool"]) <= results


class _Planner:
    def __init__(self, turns: Sequence[Turn], policy: Policy, known: tuple[Group, ...] | None) -> None:
        self.known = known
        self.fates: list[Fate] = ["keep"] * len(turns)
        self._turns = turns
        self._classification = classify(turns)
        self._step = policy.trim_step
        self._overflow: Fate = policy.tool_result_overflow
        self._live = [self._live_results(turn) if turn.role == "tool" else 0 for turn in turns]
        uncounted = {self._classification.last_user, *self._classification.results_since}
        opening = self._classification.system_prefix
        begins = opening < len(turns) and turns[opening].role == "user"
        self.summarized = begins and turns[opening].summary
        if self.summarized or (begins and policy.profile.first_turn == "user"):
            uncounted.add(opening)
        self._protected = opening + self.summarized
        self._history = [n for n in range(self._classification.system_prefix, len(turns)) if n not in uncounted]

    def _live_results(self, turn: Turn) -> int:
        results = turn.results
        if self._overflow == "drop":
            return len(results)
        return sum(not is_elided(result.text) for result in results)

    @property
    def _groups(self) -> tuple[Group, ...]:
        """Computed only when a limit is exceeded: most conversations are within their limits."""
        if self.known is None:
            self.known = groups(self._turns)
        return self.known

    @cached_property
    def _free(self) -> list[Group]:
        pinned = _pinned(self._turns, self._groups, self._classification.last_user, self._protected)
        return [group for group in self._groups if pinned.isdisjoint(range(group.start, group.stop))]

    def limit_results(self, limit: int | None) -> bool:
        """Removes the oldest results. Returns whether the limit was exceeded."""
        excess = _stepped(sum(self._live), limit, self._step)
        taken = 0
        if not excess:
            return False
        for group in self._free:
            if taken >= excess:
                break
            if live := sum(self._live[group.start : group.stop]):
                self._give(group, self._overflow)
                taken += live
        return taken > 0

    def limit_history(self, limit: int | None) -> bool:
        """Removes the oldest groups. Returns whether the limit was exceeded."""
        counted = [n for n in self._history if self.fates[n] != "drop"]
        if limit is None or len(counted) <= limit or not self._before(self._cut(counted, len(counted) - limit)):
            return False
        for group in self._before(self._cut(counted, _stepped(len(counted), limit, self._step))):
            self._give(group, "drop")
        return True

    def keep_opening(self) -> int | None:
        """Keeps the last user turn before the oldest kept turn, if that is not the user's. Returns its position."""
        start, end = self._classification.system_prefix, len(self._turns)
        oldest = next((n for n in range(start, end) if self._is_kept_speech(n)), end)
        if oldest == end or self._turns[oldest].role == "user":
            return None
        opening = next((n for n in range(oldest - 1, start - 1, -1) if self._turns[n].role == "user"), None)
        if opening is not None:
            self.fates[opening] = "keep"
        return opening

    def _is_kept_speech(self, position: int) -> bool:
        return self.fates[position] != "drop" and not is_system(self._turns[position])

    def _cut(self, counted: Sequence[int], excess: int) -> int:
        raw_start = counted[excess] if excess < len(counted) else len(self._turns)
        return aligned_start(self._groups, raw_start, self._protected)

    def _before(self, cut: int) -> list[Group]:
        return [group for group in self._free if group.stop <= cut and self.fates[group.start] != "drop"]

    def _give(self, group: Group, fate: Fate) -> None:
        for position in range(group.start, group.stop):
            if fate == "drop" or self._turns[position].role == "tool":
                self.fates[position] = fate

    def result_count(self) -> Count:
        kept = sum(live for live, fate in zip(self._live, self.fates, strict=True) if fate == "keep")
        return Count(sum(self._live), kept)

    def history_count(self, opening: int | None) -> Count:
        return Count(len(self._history), sum(self.fates[n] != "drop" and n != opening for n in self._history))


def _pinned(turns: Sequence[Turn], groups: Sequence[Group], last_user: int | None, protected: int) -> set[int]:
    newest = next(
        (group.start for group in reversed(groups) if not all(map(is_system, turns[group.start : group.stop]))), 0
    )
    pinned = {*range(protected), *range(newest, len(turns))}
    return pinned if last_user is None else pinned | {last_user}


# A step may remove at most this share of what a limit allows.
_LARGEST_SHARE: Final = 2


def _stepped(count: int, limit: int | None, step: int) -> int:
    """Returns how many to remove: the excess, rounded up to whole steps so that the cut stays for several turns."""
    if limit is None or count <= limit:
        return 0
    step = max(1, min(step, limit // _LARGEST_SHARE))
    return -(-(count - limit) // step) * step
