"""Chooses the range of the next summary of a history: what earlier requests have carried, or what this one plans."""

from collections.abc import Iterator, Sequence

import msgspec

from gateway.core.tokens import Calibration
from gateway.memory.summaries.plan import CompressLimits, NoSummary, SummaryRange, plan_range
from gateway.server.summaries.index import IndexEntry, SummaryIndex, seen
from gateway.server.summaries.recall import Recalled


class NextSummary(msgspec.Struct, frozen=True):
    """The turns that the next job may summarise.

    `planned` is the plan of this request alone. `known` is the newest boundary that an earlier request has carried,
    behind the summary that applies, and `known_range` the plan within it; None: there is none. `outgrown`: that plan
    no longer brings the request below the trigger, so that the boundary of `planned` counts from now on.
    """

    planned: SummaryRange
    known: IndexEntry | None = None
    known_range: SummaryRange | None = None
    outgrown: bool = False

    def sighted(self, index: SummaryIndex, recalled: Recalled) -> SummaryIndex:
        """Returns the index after a request that carried these boundaries."""
        waiting = _waiting(index, recalled)
        for entry in waiting:
            index = index.with_entry(seen(entry))
        newer = [entry for entry in waiting if self.known is None or entry.turns > self.known.turns]
        if newer or not (self.known is None or self.outgrown):
            return index
        boundary = self.planned.boundary
        there = index.find(boundary.digest)
        if there is not None and boundary.digest not in recalled.lost:
            return index
        return index.with_entry(IndexEntry(boundary.turns, boundary.digest))

    def options(self, index: SummaryIndex) -> Iterator[tuple[IndexEntry, SummaryRange]]:
        """Yields the candidates of the next job, the best first: an entry of the index, and the range of its summary.

        An outgrown boundary is better than none where the request exceeds its window.
        """
        if self.known is None or self.outgrown:
            planned = index.find(self.planned.boundary.digest)
            if planned is not None and planned.outcome == "candidate":
                yield planned, self.planned
        known = None if self.known is None else index.find(self.known.digest)
        if known is not None and known.outcome == "candidate" and self.known_range is not None:
            yield known, self.known_range


def next_summary(
    recalled: Recalled,
    index: SummaryIndex,
    sizes: Sequence[int],
    limits: CompressLimits,
    calibration: Calibration,
) -> NextSummary | NoSummary:
    """Returns the range that the next job for a request's history may summarise, if there is one. `sizes` are the
    estimates of its turns."""
    applied = None if recalled.applied is None else recalled.applied.record

    def plan(turns: int | None = None) -> SummaryRange | NoSummary:
        """Plans a range of at most so many turns."""
        allowed = [one for one in recalled.boundaries if turns is None or one.turns <= turns]
        return plan_range(recalled.conversation, allowed, sizes, limits, calibration, applied)

    planned = plan()
    if isinstance(planned, NoSummary):
        return planned
    waiting = _waiting(index, recalled)
    if not waiting:
        return NextSummary(planned)
    known = waiting[-1]
    summary_range = planned if known.turns == planned.boundary.turns else plan(known.turns)
    if isinstance(summary_range, NoSummary):
        return NextSummary(planned, known, outgrown=True)
    outgrown = known.turns < planned.boundary.turns and summary_range.view_after > limits.trigger * limits.window
    return NextSummary(planned, known, summary_range, outgrown)


def _waiting(index: SummaryIndex, recalled: Recalled) -> list[IndexEntry]:
    """Returns the candidates that this request carries, behind the summary that applies, the newest last."""
    digests = recalled.digests
    found = [one for one in index.entries if one.outcome == "candidate" and one.digest in digests]
    return sorted((one for one in found if one.turns > recalled.covered), key=lambda one: one.turns)
