"""Repairs an invalid conversation and returns a Notice for every change.

Pairing is computed once, on the conversation as the client sent it; ids are repaired before turns are moved, because a
repaired id must not change the pairing. Valid turns come back unchanged.
"""

from collections.abc import Sequence

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.classify import is_system
from gateway.history.pairing import pair
from gateway.history.repair.call_ids import repair_call_ids
from gateway.history.repair.reorder_results import begin, in_client_order, reorder_results
from gateway.history.repair.report_fixes import report_fixes
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
    repaired, fixes = report_fixes(conversation.turns, conversation.faults)
    pairing = pair(repaired)
    named, renamed = repair_call_ids(repaired, pairing, paths, policy.profile.reused_ids)
    settled, moved = reorder_results(named, pairing, policy.orphaned_results, paths)
    settled, begun = begin(settled, policy.profile)
    paired = [*renamed, *moved, *begun]
    known = {(notice.rule, notice.index) for notice in paired}
    notices = [notice for notice in fixes if (notice.rule, notice.index) not in known] + paired
    notices.sort(key=lambda notice: -1 if notice.index is None else notice.index)
    ends = conversation.ends_with_result or _ends_with_result(conversation.turns)
    return msgspec.structs.replace(conversation, turns=settled, faults=(), ends_with_result=ends), notices


def _ends_with_result(turns: Sequence[Turn]) -> bool:
    last = next((turn for turn in reversed(turns) if not is_system(turn)), None)
    return last is not None and last.role == "tool"
