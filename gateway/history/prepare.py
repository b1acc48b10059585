"""Runs the ordered passes over every conversation before it is encoded."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from gateway.core.conversation import Conversation, ToolResult, Turn, Violation
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.rules import RULES, violation, violation_error
from gateway.history.bound_state import Passes
from gateway.history.classify import classify
from gateway.history.first_turn import wrong_first_turn
from gateway.history.loop_guard import guard_loop
from gateway.history.pairing import is_calling
from gateway.history.recent_results import add_recent_results
from gateway.history.repair import repair
from gateway.history.transcript.escape import token
from gateway.history.trim.apply import LIMITED, trim
from gateway.history.validate import validate

# So many results have a log line each, and more where more of them are new.
_MOST_LINES: Final = 20


class Prepared(msgspec.Struct, frozen=True):
    """A conversation that an adapter may encode, and the notices of all changes.

    `violations` are those of the client's own messages; `repaired` is the conversation before any limit was applied.
    `passes` are the turns between the passes; None: no pass had any work.
    """

    conversation: Conversation
    notices: tuple[Notice, ...]
    violations: tuple[Violation, ...]
    repaired: Conversation
    passes: Passes | None = None


class Substitution(Protocol):
    """What puts a summary in the place of the oldest turns, and shortens results (`gateway.memory.summaries`)."""

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        """Returns the conversation as it is sent, and the notices of the change."""
        ...


def prepare(conversation: Conversation, policy: Policy, summary: Substitution | None = None) -> Prepared:
    """Validates, repairs, classifies, guards, puts in a summary and trims, in this order and for these reasons.

    validate comes first: `strict` must refuse before any change, and its findings must name the messages as the client
    sent them. repair comes before every pass that cuts, because groups are atomic only where every result stands by its
    call. classify and the guards read the whole conversation, before trim removes its beginning and the bodies of its
    results. A summary is put in before trim, whose limits are for what is sent. trim comes last, on whole groups, so
    that its output is as valid as its input; only the loop guard's note to the model is appended after it, because trim
    would otherwise keep that note in place of the question.

    Raises InvalidRequest in `strict` mode for any violation, in every mode for a violation without a repair. In `off`
    mode other violations are only reported, and the backend decides.
    """
    if summary is None and _is_plain(conversation, policy):
        return Prepared(conversation, (), (), conversation)
    received = conversation.turns
    violations = validate(conversation, policy.profile)
    notices: list[Notice] = []
    if violations:
        conversation, notices = _repaired_or_refused(conversation, violations, policy)
    notices += _extracted(conversation.turns)
    guarded, loop_notices = guard_loop(conversation, policy.loop_guard)
    nudge = guarded.turns[len(conversation.turns) :]
    if nudge:
        guarded = msgspec.structs.replace(guarded, turns=conversation.turns)
    recalled, recall_notices = add_recent_results(guarded, policy.recent_tool_results)
    notices += [*loop_notices, *recall_notices]
    unsummarised = recalled.turns
    if summary is not None:
        recalled, summary_notices = summary.substitute(recalled)
        notices += summary_notices
    trimmed, trim_notices = trim(recalled, policy)
    notices += trim_notices
    prepared = msgspec.structs.replace(trimmed, turns=(*trimmed.turns, *nudge)) if nudge else trimmed
    limited = any(notice.rule in LIMITED for notice in trim_notices)
    passes = Passes(received, unsummarised, recalled.turns, limited, bool(recall_notices))
    return Prepared(prepared, tuple(notices), violations, conversation, passes)


def repaired(conversation: Conversation, policy: Policy) -> Conversation:
    """Returns the conversation as `prepare` reads it, with every fault repaired and nothing else changed. Raises
    InvalidRequest as `prepare` does."""
    if _is_plain(conversation, policy):
        return conversation
    violations = validate(conversation, policy.profile)
    return _repaired_or_refused(conversation, violations, policy)[0] if violations else conversation


def _repaired_or_refused(
    conversation: Conversation, violations: Sequence[Violation], policy: Policy
) -> tuple[Conversation, list[Notice]]:
    refused = [found for found in violations if policy.repair == "strict" or _is_beyond_repair(found)]
    if refused:
        raise violation_error(refused, conversation.paths)
    # Without a turn there is nothing to send, whatever the mode.
    if policy.repair == "off" and conversation.turns:
        return conversation, [_seen(found) for found in violations]
    repaired, notices = repair(conversation, policy)
    if not repaired.turns:
        paths = conversation.paths
        param = paths.param("messages")
        why = "is empty after the tool results without a call are dropped" if conversation.turns else "holds no message"
        detail = f"{param} {why}"
        empty = violation("MESSAGES_EMPTY", -1, param=param, detail=detail, paths=paths)
        raise violation_error([empty, *violations], paths)
    return repaired, notices


def _is_plain(conversation: Conversation, policy: Policy) -> bool:
    """Returns whether no pass has any work: no fault, no call, no result, and no turn above a limit."""
    turns, limit = conversation.turns, policy.max_history_messages
    if not turns or conversation.faults or (limit is not None and len(turns) > limit):
        return False
    if policy.profile.first_turn == "user" and wrong_first_turn(turns, policy.profile) is not None:
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
    return Notice(
        "validate", "seen", found.rule, found.detail, index=index, tool_call_id=found.tool_call_id, level="warning"
    )


def _extracted(turns: Sequence[Turn]) -> list[Notice]:
    """Returns one log line for every result that the model has not answered yet, and for those before it until there
    are `_MOST_LINES`; the results of earlier rounds before them have one together. Each of these had its line when it
    was new, and an agent sends hundreds of them again in every request."""
    if not _has_results(turns):
        return []
    positions = classify(turns).results_since
    answered = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), -1)
    since = [turns[position] for position in positions]
    results = [(turn.index, block) for turn in since for block in turn.blocks if type(block) is ToolResult]
    new = sum([len(turns[position].results) for position in positions if position > answered])
    first = max(0, len(results) - max(new, _MOST_LINES))
    notices = [_of_earlier_rounds(results[:first])] if first else []
    return notices + [
        _extraction(
            f"Extracted tool result: tool_call_id={token(result.call_id)}, content_len={len(result.text)}",
            index,
            result.call_id,
        )
        for index, result in results[first:]
    ]


def _of_earlier_rounds(results: Sequence[tuple[int | None, ToolResult]]) -> Notice:
    length = sum([len(result.text) for _, result in results])
    plural = "s" if len(results) > 1 else ""
    detail = f"Extracted {len(results)} tool result{plural} of earlier rounds: content_len={length}"
    return _extraction(detail, results[0][0], None)


def _extraction(detail: str, index: int | None, call_id: str | None) -> Notice:
    return Notice("classify", "seen", "TOOL_RESULT_EXTRACTED", detail, index=index, tool_call_id=call_id, level="debug")
