"""Explains what compression does with a conversation, from the conversation alone."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.tokens import Calibration, estimate_turn
from gateway.diagnostics.summary_state import SummaryState, UsedSummary, WouldCover
from gateway.memory.history_digest import Boundary
from gateway.memory.summaries.plan import CompressLimits, NoSummary, plan_range
from gateway.memory.summaries.substitution import AppliedSummary, FittedHistory, fit
from gateway.memory.summaries.summary import SummaryRecord
from gateway.memory.summaries.view import view_tokens
from gateway.settings import ModelSettings

UNCALIBRATED: Final = Calibration()


def compress_limits(entry: ModelSettings, writer: ModelSettings) -> CompressLimits:
    """Returns the limits of a model whose summaries another model (or itself) writes."""
    compress, window = entry.compress, entry.context_length
    assert window is not None, "the settings have a window where compression is enabled"
    return CompressLimits(
        window, compress.trigger, compress.target, compress.tail, compress.least_gain, writer.context_length
    )


def explain_summary(
    conversation: Conversation,
    boundaries: Sequence[Boundary],
    limits: CompressLimits,
    calibration: Calibration = UNCALIBRATED,
    applied: AppliedSummary | None = None,
) -> tuple[FittedHistory | None, SummaryState]:
    """Returns the fitted history that a repaired conversation would be sent with (None: it is sent as it is), and the
    state that follows from it alone; the caller adds what is stored of it."""
    record = None if applied is None else applied.record
    sizes = [estimate_turn(turn) for turn in conversation.turns]
    planned = plan_range(conversation, boundaries, sizes, limits, calibration, record)
    _, result_limits = fit(conversation, limits.window, calibration, record)
    sent = view_tokens(conversation, sizes, record) if result_limits is None else result_limits.sent
    state = SummaryState(
        estimate=calibration.tokens(sent),
        ratio=round(calibration.ratio, 3),
        window=limits.window,
        trigger=round(limits.trigger * limits.window),
        applied=None if record is None else _used(record),
    )
    if isinstance(planned, NoSummary):
        state = msgspec.structs.replace(state, why_not=planned.reason)
    else:
        cover = WouldCover(planned.boundary.turns, planned.covered_tokens, planned.view_after, planned.generation)
        state = msgspec.structs.replace(state, would_cover=cover, why_not="unseen")
    unchanged = applied is None and result_limits is None
    return None if unchanged else FittedHistory(applied, result_limits), state


def _used(record: SummaryRecord) -> UsedSummary:
    return UsedSummary(
        record.digest.hex(),
        record.turns,
        record.generation,
        record.created,
        record.producer.backend,
        record.producer.model,
        record.cost.covered_tokens,
        record.cost.summary_tokens,
        record.text,
    )
