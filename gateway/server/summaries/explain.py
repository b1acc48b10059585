"""Explains what a running gateway knows of a conversation's summaries. Nothing is written, and no job starts."""

import asyncio
import time

import msgspec

from gateway.capabilities.held_tools import with_offered
from gateway.core.tokens import Calibration, estimate_turn
from gateway.diagnostics.explain_summary import explain_summary
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.diagnostics.summary_state import SeenBoundary, SummaryState, WhyNot, WouldCover
from gateway.memory.summaries.plan import CompressLimits, NoSummary, SummaryRange
from gateway.memory.summaries.substitution import FittedHistory, asks_for_compaction
from gateway.server.state.stores import RequestStore
from gateway.server.summaries.index import IndexEntry, SummaryIndex
from gateway.server.summaries.next_summary import NextSummary, next_summary
from gateway.server.summaries.recall import Recalled, recall
from gateway.server.summaries.summaries import Summaries
from gateway.server.summaries.summary_store import spent_in, tokens_key
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import RoutedModel
from gateway.settings import ModelSettings


async def explain_compression(
    summaries: Summaries,
    store: RequestStore | None,
    routed: RoutedRequest,
    name: str,
    entry: ModelSettings,
    backend: Backend,
) -> tuple[FittedHistory | None, SummaryState]:
    """Returns the fitted history that a request would be sent with, and the state of its summary. `name` is the
    model's, with its entry and backend; `store` is None where nothing may be remembered of the request."""
    model = RoutedModel(name, entry, backend)
    limits, calibration = summaries.limits(model), summaries.calibration(model)
    conversation = with_offered(routed.conversation, routed.policy, backend.adapter.capabilities)
    recalled: Recalled | None = None
    off = store is None or not summaries.allows(store.tenant) or asks_for_compaction(routed.conversation)
    if store is not None and not off:
        recalled = await recall(store, conversation, routed.policy, large=True)
    if store is None or recalled is None:
        fitted, state = await asyncio.to_thread(explain_summary, conversation, (), limits, calibration)
        away = store is not None and store.failed
        why = "off" if off else "store" if away else state.why_not
        return None if off else fitted, msgspec.structs.replace(state, why_not=why)
    fitted, state, following = await asyncio.to_thread(_explained, recalled, limits, calibration)
    if following is not None:
        state = await _with_next(summaries, store, model, recalled, following, state)
    digests = recalled.digests
    boundaries = tuple(
        SeenBoundary(
            one.turns, one.digest.hex(), one.outcome, one.sightings, one.generation, present=one.digest in digests
        )
        for one in recalled.index.entries
    )
    return fitted, msgspec.structs.replace(state, root=recalled.root.hex(), boundaries=boundaries)


def _explained(
    recalled: Recalled, limits: CompressLimits, calibration: Calibration
) -> tuple[FittedHistory | None, SummaryState, NextSummary | None]:
    history = recalled.conversation
    fitted, state = explain_summary(history, recalled.boundaries, limits, calibration, recalled.applied)
    sizes = [estimate_turn(turn) for turn in history.turns]
    following = next_summary(recalled, recalled.index, sizes, limits, calibration)
    return fitted, state, None if isinstance(following, NoSummary) else following


async def _with_next(
    summaries: Summaries,
    store: RequestStore,
    model: RoutedModel,
    recalled: Recalled,
    following: NextSummary,
    state: SummaryState,
) -> SummaryState:
    """Returns the state with what the next job covers, and why the next request with this history would start none."""
    sightings = model.route.compress.sightings
    # The next request with this history is one more sighting.
    sighted = following.sighted(recalled.index, recalled)
    options = [*following.options(sighted)]
    due = next(((entry, summary_range) for entry, summary_range in options if entry.sightings >= sightings), None)
    summary_range = following.planned if not options else options[0][1] if due is None else due[1]
    would = WouldCover(
        summary_range.boundary.turns, summary_range.covered_tokens, summary_range.view_after, summary_range.generation
    )
    why: WhyNot | None = "unseen" if options else "abandoned"
    if summaries.jobs.is_running(store.tenant, recalled.root):
        why = "running"
    elif due is not None:
        why = await _refusal(summaries, store, model, sighted, due[0], summary_range)
    return msgspec.structs.replace(state, would_cover=would, why_not=why)


async def _refusal(
    summaries: Summaries,
    store: RequestStore,
    model: RoutedModel,
    index: SummaryIndex,
    entry: IndexEntry,
    summary_range: SummaryRange,
) -> WhyNot | None:
    """Returns why no job would start for an entry that enough requests have carried."""
    now = time.time()
    refusal = index.refusal(entry, model.route.compress.sightings, now)
    if refusal is not None:
        return refusal
    most = summaries.job_limits(store.tenant, model.route.compress).tokens_per_day
    [spent] = await store.get("idx", [tokens_key(now)])
    return "budget" if most is not None and spent_in(spent) + summary_range.covered_tokens > most else None
