"""Decides for every turn whether it is kept, kept in part or left out.

Kept, regardless of the limits: the leading system turns, a summary behind them, the pinned user turns
(`gateway.history.pinned`), and the newest group with everything after it. All other turns are removed oldest first and
by whole groups, so that no call loses its result and no result its call; the user turns inside the running loop go
last, as far as they take no more than half of the limit. A limit is a target: a group that is only in part above it is
kept.

Where a provider requires the user to begin, the user turn of the oldest kept group stays as well.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Turn, is_system
from gateway.core.policy import Policy
from gateway.history.classify import classify
from gateway.history.groups import Group, groups
from gateway.history.pinned import PINNED_CHARS, pinned_turns
from gateway.history.trim.truncate import is_elided

# `elide`: without the body of its results; `shorten`: a user turn, with the beginning and the end of its text.
Fate = Literal["keep", "elide", "shorten", "drop"]


class Count(msgspec.Struct, frozen=True):
    """The total count, and the count of those that are kept."""

    before: int
    after: int


class Plan(msgspec.Struct, frozen=True):
    """The decision for every turn, with the figures behind it.

    It holds the counts of each limit that removes something (None: nothing), the groups, where they were needed, and
    the user turn that was kept because the provider wants the user to begin (None: no need). `beyond`: how many pinned
    turns exceed the limit of history messages. `summarized`: older turns are sent as a summary.
    """

    fates: tuple[Fate, ...]
    results: Count | None
    history: Count | None
    groups: tuple[Group, ...] | None
    opening: int | None = None
    beyond: int = 0
    summarized: bool = False


def plan(turns: Sequence[Turn], policy: Policy, known: tuple[Group, ...] | None = None) -> Plan:
    """Decides which turns stay within the policy's limits. Accepts their groups where they are known already.

    `max_tool_results` counts the results that still have their body. `max_history_messages` counts every turn but the
    leading system turns, the last user turn and the results after it (they are counted as results). The pinned turns
    among the newest count like any other; older ones stay beyond the limit. Where the user must begin, the user turn
    that begins is not counted either. A summary never is.
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
        planner.beyond,
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
        self._pinned = pinned_turns(turns)
        uncounted = {self._classification.last_user, *self._classification.results_since}
        opening = self._classification.system_prefix
        begins = opening < len(turns) and turns[opening].role == "user"
        self.summarized = begins and turns[opening].summary
        if self.summarized or (begins and policy.profile.first_turn == "user"):
            uncounted.add(opening)
        self._protected = opening + self.summarized
        self._counted = {*range(self._classification.system_prefix, len(turns))} - uncounted
        self.beyond = 0

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
    def _old(self) -> list[Group]:
        """The groups between the protected turns and the newest group."""
        newest = next((group.start for group in reversed(self._groups) if not self._is_system(group)), 0)
        return [group for group in self._groups if group.start >= self._protected and group.stop <= newest]

    def _is_system(self, group: Group) -> bool:
        return all(map(is_system, self._turns[group.start : group.stop]))

    def limit_results(self, limit: int | None) -> bool:
        """Removes the oldest results. Returns whether the limit was exceeded."""
        excess = _stepped(sum(self._live), limit, self._step)
        taken = 0
        if not excess:
            return False
        for group in self._old:
            if taken >= excess:
                break
            if live := sum(self._live[group.start : group.stop]):
                self._give(group, self._overflow)
                taken += live
        return taken > 0

    def limit_history(self, limit: int | None) -> bool:
        """Removes the oldest groups, and shortens the user turns that stay in their place. Returns whether any went."""
        counted = [n in self._counted and fate != "drop" for n, fate in enumerate(self.fates)]
        count = sum(counted)
        if limit is None or count <= limit:
            return False
        order = self._oldest_first(limit)
        before = [0, *accumulate(counted)]
        beyond = _first_of(order, before, count - limit)
        removes = any(map(self._is_removable, beyond))
        if removes:
            beyond = _first_of(order, before, _stepped(count, limit, self._step))
        cut = max([group.stop for group in beyond], default=0)
        if removes:
            for group in beyond:
                self._give(group, "drop")
            self._shorten_before(cut)
        pinned = sum([counted[n] for n in self._pinned.reasons if n < cut])
        self.beyond = max(0, min(pinned, self._count_kept() - limit))
        return removes

    def _count_kept(self) -> int:
        return len([n for n in self._counted if self.fates[n] != "drop"])

    def _oldest_first(self, limit: int) -> list[Group]:
        """Returns the groups before the newest one, in the order in which the limit counts them out: the newest user
        turns inside the running loop come last."""
        in_loop = self._pinned.in_loop
        last = {*in_loop[_stepped(len(in_loop), limit // _LARGEST_SHARE, self._step) :]}
        first = [group for group in self._old if group.start not in last]
        return [*first, *[group for group in self._old if group.start in last]] if last else first

    def _is_removable(self, group: Group) -> bool:
        places = range(group.start, group.stop)
        return any([self.fates[n] != "drop" and n not in self._pinned.reasons for n in places])

    def _shorten_before(self, cut: int) -> None:
        for n in (*self._pinned.reasons, *self._pinned.in_loop):
            # The newest one is the question in most requests.
            long = n < cut and n != self._classification.last_user and len(self._turns[n].text) > PINNED_CHARS
            if long and self.fates[n] == "keep":
                self.fates[n] = "shorten"

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

    def _give(self, group: Group, fate: Fate) -> None:
        """Pinned turns stay also where they stand inside a group, as they may in a history that was not repaired."""
        for position in range(group.start, group.stop):
            if position not in self._pinned.reasons and (fate == "drop" or self._turns[position].role == "tool"):
                self.fates[position] = fate

    def result_count(self) -> Count:
        kept = sum(live for live, fate in zip(self._live, self.fates, strict=True) if fate == "keep")
        return Count(sum(self._live), kept)

    def history_count(self, opening: int | None) -> Count:
        return Count(len(self._counted), self._count_kept() - (opening in self._counted))


def _first_of(order: Sequence[Group], before: Sequence[int], excess: int) -> list[Group]:
    """Returns the first groups, with no more counted turns than the excess; `before` counts those before a position."""
    found: list[Group] = []
    for group in order:
        excess -= before[group.stop] - before[group.start]
        if excess < 0:
            break
        found.append(group)
    return found


# What a step removes, and what the user turns of the loop take, is at most a limit divided by this.
_LARGEST_SHARE: Final = 2


def _stepped(count: int, limit: int | None, step: int) -> int:
    """Returns the number of turns to remove: the excess, rounded up to whole steps so that the cut stays for several
    turns."""
    if limit is None or count <= limit:
        return 0
    step = max(1, min(step, limit // _LARGEST_SHARE))
    return -(-(count - limit) // step) * step
