"""Repairs an invalid conversation and returns a Notice for every change.

Pairing is computed once, on the conversation as the client sent it; ids are repaired before turns are moved, because a
repaired id must not change the pairing. Valid turns come back unchanged.
"""

from collections.abc import Sequence

import msgspec

from gateway.core.conversation import Conversation, Turn, Violation, is_system
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.rules import RULES
from gateway.history.pairing import pair
from gateway.history.repair.call_ids import repair_call_ids
from gateway.history.repair.results import begin, in_client_order, reorder_results
from gateway.history.validate import validate

__all__ = ["in_client_order", "repair"]


def repair(conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """Repairs everything that `validate` finds under the policy's profile, except a conversation without turns.

    A conversation without turns comes back unchanged. Idempotent, and linear in the number of messages. The result
    keeps every rule, and its `faults` are empty.
    """
    if not conversation.turns or not validate(conversation, policy.profile):
        return conversation, []
    paths = conversation.paths
    repaired, fixes = _report_fixes(conversation.turns, conversation.faults)
    pairing = pair(repaired)
    named, renamed = repair_call_ids(repaired, pairing, paths, policy.profile.reused_ids)
    ordered, moved = reorder_results(named, pairing, policy.orphaned_results, paths)
    ordered, begun = begin(ordered, policy.profile)
    paired = [*renamed, *moved, *begun]
    known = {(notice.rule, notice.index) for notice in paired}
    notices = [notice for notice in fixes if (notice.rule, notice.index) not in known] + paired
    notices.sort(key=lambda notice: -1 if notice.index is None else notice.index)
    ends = conversation.ends_with_result or _ends_with_result(conversation.turns)
    return msgspec.structs.replace(conversation, turns=ordered, faults=(), ends_with_result=ends), notices


def _ends_with_result(turns: Sequence[Turn]) -> bool:
    last = next((turn for turn in reversed(turns) if not is_system(turn)), None)
    return last is not None and last.role == "tool"


def _report_fixes(turns: tuple[Turn, ...], faults: Sequence[Violation]) -> tuple[tuple[Turn, ...], list[Notice]]:
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
    return Notice("repair", action, fault.rule, fault.detail, index=index, tool_call_id=fault.tool_call_id)
