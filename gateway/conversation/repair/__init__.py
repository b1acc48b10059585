"""A broken conversation -> a valid one, and a Notice for everything that was changed to make it so.

Pairing is settled once, on the conversation as the client sent it; ids are mended before turns are moved, because a
mended id must not change what was bound. What is valid comes back untouched, turn by turn.
"""

import msgspec

from gateway.conversation.pairing import pair
from gateway.conversation.repair.faults import tell_mended
from gateway.conversation.repair.identifiers import mend_ids
from gateway.conversation.repair.order import settle
from gateway.conversation.validate import validate
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation

__all__ = ["repair"]


def repair(conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """Mend all that `validate` finds, except a conversation without turns: it comes back as it is.

    Idempotent, and linear in the number of messages. The result keeps every rule, and its `faults` are empty.
    """
    if not conversation.turns or not validate(conversation):
        return conversation, []
    mended, told = tell_mended(conversation.turns, conversation.faults)
    pairing = pair(mended)
    named, renamed = mend_ids(mended, pairing)
    settled, moved = settle(named, pairing, policy.orphaned_results)
    paired = [*renamed, *moved]
    said = {(notice.rule, notice.index) for notice in paired}
    notices = [notice for notice in told if (notice.rule, notice.index) not in said] + paired
    notices.sort(key=lambda notice: -1 if notice.index is None else notice.index)
    return msgspec.structs.replace(conversation, turns=settled, faults=()), notices
