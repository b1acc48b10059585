"""Finds every violation of the message protocol, with rule, message index and tool call id.

The dialect has listed the faults of shape while it read the request; this module adds the faults of pairing. The rule
of OpenAI's API: an assistant message with tool_calls is followed directly by one tool message for each call, in any
order, and a tool message stands nowhere else. In addition, a call id names one call of the whole conversation, because
several providers refuse a repeated id.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.core.conversation import Conversation, ToolCall, ToolResult, Turn, Violation
from gateway.core.profiles import NEUTRAL, Profile
from gateway.history.first_turn import wrong_first_turn
from gateway.history.pairing import CallAt, Pairing, ResultAt, is_paired, pair
from gateway.history.rules import RuleCode, violation

# The number of ids that a sentence lists before it breaks off.
NAMED: Final = 5


def validate(conversation: Conversation, profile: Profile = NEUTRAL) -> tuple[Violation, ...]:
    """Returns all violations, by message index. Empty: any backend that follows the protocol accepts the conversation.

    A profile adds its provider's rules of order beyond the protocol, and removes the rules that the provider lacks.
    """
    faults, turns = conversation.faults, conversation.turns
    opening = first_turn_fault(turns, profile)
    if turns and not faults and opening is None and is_paired(turns):
        return ()
    if not turns and all(fault.index < 0 for fault in faults):
        return (violation("MESSAGES_EMPTY", -1, param="messages"), *faults)
    told = {(fault.rule, fault.index) for fault in faults}
    shown = pairing_faults(turns, profile) if opening is None else (opening, *pairing_faults(turns, profile))
    found = [one for one in shown if (one.rule, one.index) not in told]
    return tuple(sorted((*faults, *found), key=lambda one: one.index))


def first_turn_fault(turns: Sequence[Turn], profile: Profile) -> Violation | None:
    """Returns the violation when the provider requires the user to begin and another role does."""
    position = wrong_first_turn(turns, profile)
    if position is None:
        return None
    index, role = index_of(turns, position), turns[position].role
    detail = f"the first message behind the system's is of the role {role!r}; this provider wants the user's there"
    return violation("FIRST_TURN_ROLE", index, param=f"messages[{index}].role", detail=detail)


def pairing_faults(turns: Sequence[Turn], profile: Profile = NEUTRAL) -> Iterator[Violation]:
    """Yields the violations of calls and results that follow from the turns themselves."""
    pairing = pair(turns)
    yield from _call_faults(turns, pairing, profile)
    for position, results in pairing.results.items():
        for place in (ResultAt(position, ordinal) for ordinal in range(len(results))):
            if not _answers_in_place(pairing, place):
                yield result_fault(turns, pairing, place)


def index_of(turns: Sequence[Turn], position: int) -> int:
    """Returns the turn's index in the client's request, or its position if the client did not send it."""
    index = turns[position].index
    return position if index is None else index


def _call_faults(turns: Sequence[Turn], pairing: Pairing, profile: Profile) -> Iterator[Violation]:
    users: dict[str, int] = {}
    for position, calls in pairing.calls.items():
        index = index_of(turns, position)
        for ordinal, call in enumerate(calls):
            param = f"messages[{index}].tool_calls[{ordinal}].id"
            if call.id_derived:
                continue
            if not call.id:
                yield violation("CALL_ID_MISSING", index, param=param)
            elif call.id in users and profile.reused_ids == "rename":
                detail = f"the id {call.id!r} names a call of messages[{users[call.id]}] already"
                yield violation("CALL_ID_DUPLICATE", index, param=param, detail=detail, tool_call_id=call.id)
            users.setdefault(call.id, index)
        missing = [call for ordinal, call in enumerate(calls) if not _in_place(pairing, CallAt(position, ordinal))]
        if missing:
            yield _unanswered(index, calls, missing)


def _in_place(pairing: Pairing, call: CallAt) -> bool:
    """Returns whether the call's result stands in the run of tool turns directly after it."""
    answer = pairing.answers.get(call)
    return answer is not None and pairing.caller(answer.turn) == call.turn


def _unanswered(index: int, calls: Sequence[ToolCall], missing: Sequence[ToolCall]) -> Violation:
    names = ", ".join(map(called, missing[:NAMED])) + (", ..." if len(missing) > NAMED else "")
    return violation(
        "CALLS_UNANSWERED",
        index,
        param=f"messages[{index}].tool_calls",
        detail=f"{len(missing)} of {len(calls)} calls have no tool message directly after the message: {names}",
        tool_call_id=None if missing[0].id_derived else missing[0].id,
    )


def called(call: ToolCall) -> str:
    """Names a call for its client: by its id, or by its function where it has no id."""
    return f"the function_call of {call.name!r}" if call.id_derived else repr(call.id)


def _answers_in_place(pairing: Pairing, place: ResultAt) -> bool:
    """Returns whether the result answers, by its id or by its only name, a call of the turn before its run."""
    call = pairing.call_of(place)
    if call is None or pairing.caller(place.turn) != pairing.answered[place].turn:
        return False
    result = pairing.results[place.turn][place.ordinal]
    return result.id_derived or (bool(call.id) and call.id == result.call_id)


def result_fault(turns: Sequence[Turn], pairing: Pairing, place: ResultAt) -> Violation:
    """Returns the violation of a result that stands in the wrong place."""
    index = index_of(turns, place.turn)
    result = pairing.results[place.turn][place.ordinal]
    rule, detail = _judge(turns, pairing, place, result)
    call = pairing.answered.get(place)
    if call is not None and pairing.caller(place.turn) != call.turn:
        detail = f"{detail}; the call it answers is in messages[{index_of(turns, call.turn)}]"
    field = "role" if rule == "TOOL_ORPHAN" else "name" if result.id_derived else "tool_call_id"
    call_id = None if result.id_derived else result.call_id or None
    return violation(rule, index, param=f"messages[{index}].{field}", detail=detail, tool_call_id=call_id)


def _judge(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, result: ToolResult) -> tuple[RuleCode, str]:
    call_id = result.call_id
    if not call_id:
        return "TOOL_ID_MISSING", ""
    duplicate = pairing.duplicates.get(place)
    if duplicate is not None:
        said = index_of(turns, duplicate.turn)
        return "TOOL_ID_DUPLICATE", f"the call {call_id!r} of messages[{said}] has its tool message already"
    start = pairing.caller(place.turn)
    if start is None:
        return "TOOL_ORPHAN", _orphan(turns, pairing.before[place.turn])
    if result.id_derived:
        named = repr(turns[place.turn].name)
        return (
            "TOOL_ID_UNKNOWN",
            f"{named} is the function of none of the open calls of messages[{index_of(turns, start)}]",
        )
    return "TOOL_ID_UNKNOWN", f"{call_id!r} is the id of none of the calls of messages[{index_of(turns, start)}]"


def _orphan(turns: Sequence[Turn], before: int) -> str:
    """Clients that store only role and content lose the calls: the message names this cause."""
    if before >= 0 and turns[before].role == "assistant":
        return f"the tool message follows messages[{index_of(turns, before)}], which has lost its tool_calls"
    return "the tool message does not follow an assistant message with tool_calls"
