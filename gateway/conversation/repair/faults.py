"""Faults of shape, which the dialect mended while it read the request -> notices, and turns without their source."""

from collections.abc import Sequence

import msgspec

from gateway.conversation.rules import RULES
from gateway.notices import Notice
from gateway.types import Turn, Violation


def tell_mended(turns: tuple[Turn, ...], faults: Sequence[Violation]) -> tuple[tuple[Turn, ...], list[Notice]]:
    """A notice for every fault. A turn with a fault is no longer what the client wrote, so it loses its source."""
    broken = {fault.index for fault in faults}
    kept = tuple(
        msgspec.structs.replace(turn, source=None) if turn.source is not None and turn.index in broken else turn
        for turn in turns
    )
    return kept, [_notice(fault) for fault in faults]


def _notice(fault: Violation) -> Notice:
    rule = RULES.get(fault.rule)
    action = rule.repair if rule is not None and rule.repair is not None else "changed"
    index = fault.index if fault.index >= 0 else None
    return Notice("repair", action, fault.rule, fault.detail, index, fault.tool_call_id)
