"""Explains what compression does with a conversation, from the conversation alone."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation
from gateway.diagnostics.summary_state import SummaryState, UsedSummary, WouldCover
from gateway.history.compress.chain import Boundary
from gateway.history.compress.estimate import Calibration, estimate_turn
from gateway.history.compress.plan import CompressLimits, NoCover, plan_cover, view_tokens
from gateway.history.compress.summary_record import SummaryRecord
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
    applied: SummaryRecord | None = None,
) -> SummaryState:
    """Returns what follows from a repaired conversation alone; the caller adds what is stored of it."""
    sizes = [estimate_turn(turn) for turn in conversation.turns]
    planned = plan_cover(conversation, boundaries, sizes, limits, calibration, applied)
    state = SummaryState(
        estimate=calibration.tokens(view_tokens(conversation, sizes, applied)),
        ratio=round(calibration.ratio, 3),
        window=limits.window,
        trigger=round(limits.trigger * limits.window),
        applied=None if applied is None else _used(applied),
    )
    if isinstance(planned, NoCover):
        return msgspec.structs.replace(state, why_not=planned.reason)
    cover = WouldCover(planned.boundary.turns, planned.covered_tokens, planned.view_after, planned.generation)
    return msgspec.structs.replace(state, would_cover=cover, why_not="unseen")


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
