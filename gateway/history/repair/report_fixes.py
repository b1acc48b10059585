"""Reports the shape faults that the dialect repaired while reading, and drops the source of their turns."""

from collections.abc import Sequence

import msgspec

from gateway.core.conversation import Turn, Violation
from gateway.core.notices import Notice
from gateway.core.rules import RULES


def report_fixes(turns: tuple[Turn, ...], faults: Sequence[Violation]) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Returns a notice for every fault. A turn with a fault loses its source, as it no longer matches the client's."""
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
