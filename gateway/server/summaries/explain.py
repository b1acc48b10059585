"""Explains what a running gateway knows of a conversation's summaries. Nothing is written, and no job starts."""

import asyncio
import time

import msgspec

from gateway.diagnostics.explain_summary import explain_summary
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.diagnostics.summary_state import SeenBoundary, SummaryState, WhyNot, WouldCover
from gateway.history.compress.native_compaction import asks_for_compaction
from gateway.history.compress.substitute import AppliedSummary
from gateway.server.state.request_store import RequestStore
from gateway.server.summaries.index import IndexEntry, newest
from gateway.server.summaries.job import RoutedModel
from gateway.server.summaries.recall import Recalled, recall
from gateway.server.summaries.summaries import Summaries
from gateway.server.summaries.summary_store import spent_in, tokens_key
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings


async def explain_compression(
    summaries: Summaries,
    store: RequestStore | None,
    routed: RoutedRequest,
    name: str,
    entry: ModelSettings,
    backend: Backend,
) -> tuple[AppliedSummary | None, SummaryState]:
    """Returns the summary that a request would use, and what is known of its conversation. `name` is the model's,
    with its entry and backend; `store` is None where nothing may be remembered of the request."""
    model = RoutedModel(name, entry, backend)
    limits, calibration = summaries.limits(model), summaries.calibration(model)
    recalled: Recalled | None = None
    why: WhyNot | None
    off = store is None or not summaries.allows(store.tenant) or asks_for_compaction(routed.conversation)
    if store is not None and not off:
        recalled = await recall(store, routed.conversation, routed.policy, large=True)
    if store is None or recalled is None:
        state = await asyncio.to_thread(explain_summary, routed.conversation, (), limits, calibration)
        away = store is not None and store.failed
        why = "off" if off else "store" if away else state.why_not
        return None, msgspec.structs.replace(state, why_not=why)
    record = None if recalled.applied is None else recalled.applied.record
    candidate = newest(recalled.index, "candidate", recalled.digests)
    if candidate is not None and candidate.turns <= recalled.covered:
        candidate = None
    # A job covers what was seen before, not what has come since.
    allowed = [one for one in recalled.boundaries if candidate is None or one.turns <= candidate.turns]
    state = await asyncio.to_thread(explain_summary, recalled.conversation, allowed, limits, calibration, record)
    if (cover := state.would_cover) is not None:
        why = await _why_not(summaries, store, model, recalled, candidate, cover)
        state = msgspec.structs.replace(state, why_not=why)
    digests = recalled.digests
    boundaries = tuple(
        SeenBoundary(
            one.turns, one.digest.hex(), one.outcome, one.sightings, one.generation, present=one.digest in digests
        )
        for one in recalled.index.entries
    )
    return recalled.applied, msgspec.structs.replace(state, root=recalled.root.hex(), boundaries=boundaries)


async def _why_not(
    summaries: Summaries,
    store: RequestStore,
    model: RoutedModel,
    recalled: Recalled,
    candidate: IndexEntry | None,
    cover: WouldCover,
) -> WhyNot | None:
    """Returns why the next request with this history would start no job, although a job could cover some of it."""
    compress = model.route.compress
    if summaries.jobs.is_running(store.tenant, recalled.root):
        return "running"
    if candidate is None:
        abandoned = newest(recalled.index, "abandoned", recalled.digests)
        if abandoned is not None and abandoned.turns == cover.turns:
            return "abandoned"
        return None if compress.sightings == 1 else "unseen"
    now = time.time()
    # The next request with this history is one more sighting.
    refusal = recalled.index.refusal(candidate, compress.sightings - 1, now)
    if refusal is not None:
        return refusal
    most = summaries.job_limits(store.tenant, compress).tokens_per_day
    [spent] = await store.get("idx", [tokens_key(now)])
    return "budget" if most is not None and spent_in(spent) + cover.tokens > most else None
