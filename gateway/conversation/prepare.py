"""The ordered pipeline that every conversation goes through before it is encoded."""

from collections.abc import Sequence

import msgspec

from gateway.conversation.classify import classify
from gateway.conversation.guard import token
from gateway.conversation.loop_guard import guard_loop
from gateway.conversation.pairing import is_calling
from gateway.conversation.recent_results import add_recent_results
from gateway.conversation.refusal import refuse
from gateway.conversation.repair import repair
from gateway.conversation.rules import RULES
from gateway.conversation.trim import trim
from gateway.conversation.validate import validate
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation, Turn, Violation


class Prepared(msgspec.Struct, frozen=True):
    """A conversation an adapter may encode, and everything that was changed to make it so.

    `violations` are those of the client's own messages; `repaired` is the conversation as it was before any limit.
    """

    conversation: Conversation
    notices: tuple[Notice, ...]
    violations: tuple[Violation, ...]
    repaired: Conversation


def prepare(conversation: Conversation, policy: Policy) -> Prepared:
    """Validate, repair, classify, guard, trim, in this order and for these reasons.

    validate comes first: `strict` must refuse before anything has changed, and its findings must name the messages as
    the client sent them. repair comes before everything that cuts, because groups are atomic only where every result
    stands by its call. classify and the guards look at the whole conversation, before trim hides its beginning and
    the bodies of its results. trim comes last, on whole groups, so that what it leaves is as valid as what it was
    given; only the guard's own word to the model is put behind it, or trim would keep that in place of the question.

    Raises InvalidRequest in `strict` mode for any violation, in `repair` mode for what cannot be mended. In `off`
    mode violations are only told, and the backend decides.
    """
    if _is_plain(conversation, policy):
        return Prepared(conversation, (), (), conversation)
    violations = validate(conversation)
    notices: list[Notice] = []
    if violations:
        conversation, notices = _settle(conversation, violations, policy)
    notices += _extracted(conversation.turns)
    guarded, seen = guard_loop(conversation, policy.loop_guard)
    nudge = guarded.turns[len(conversation.turns) :]
    if nudge:
        guarded = msgspec.structs.replace(guarded, turns=conversation.turns)
    recalled, told = add_recent_results(guarded, policy.recent_tool_results)
    trimmed, cut = trim(recalled, policy)
    notices += [*seen, *told, *cut]
    prepared = msgspec.structs.replace(trimmed, turns=(*trimmed.turns, *nudge)) if nudge else trimmed
    return Prepared(prepared, tuple(notices), violations, conversation)


def _settle(
    conversation: Conversation, violations: Sequence[Violation], policy: Policy
) -> tuple[Conversation, list[Notice]]:
    if policy.repair == "off":
        return conversation, [_seen(found) for found in violations]
    beyond = [found for found in violations if policy.repair == "strict" or _is_beyond_repair(found)]
    if beyond:
        raise refuse(beyond)
    return repair(conversation, policy)


def _is_plain(conversation: Conversation, policy: Policy) -> bool:
    """Whether there is nothing that the passes look for: no fault, no call, no result, and no turn too many."""
    turns, limit = conversation.turns, policy.max_history_messages
    if not turns or conversation.faults or (limit is not None and len(turns) > limit):
        return False
    roles = {turn.role for turn in turns}
    return "tool" not in roles and not ("assistant" in roles and any(map(is_calling, turns)))


def _has_results(turns: Sequence[Turn]) -> bool:
    return "tool" in [turn.role for turn in turns]


def _is_beyond_repair(found: Violation) -> bool:
    rule = RULES.get(found.rule)
    return rule is not None and rule.repair is None


def _seen(found: Violation) -> Notice:
    index = found.index if found.index >= 0 else None
    return Notice("validate", "seen", found.rule, found.detail, index, found.tool_call_id, "warning")


def _extracted(turns: Sequence[Turn]) -> list[Notice]:
    """One line of the log for every result that the model has not spoken about yet."""
    return [
        Notice(
            "classify",
            "seen",
            "TOOL_RESULT_EXTRACTED",
            f"Extracted tool result: tool_call_id={token(result.call_id)}, content_len={len(result.text)}",
            turns[position].index,
            result.call_id,
            "debug",
        )
        for position in (classify(turns).results_since if _has_results(turns) else ())
        for result in turns[position].results
    ]
