"""Conversation -> every violation of the message protocol, with rule, message index and tool call id.

The dialect has listed the faults of shape while it read the request; here the faults of pairing join them. The rule of
OpenAI's API: an assistant message with tool_calls is followed directly by one tool message for each call, in any
order, and a tool message stands nowhere else. On top of it, a call id names one call of the whole conversation,
because several providers refuse an id that comes twice.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.conversation.pairing import CallAt, Pairing, ResultAt, is_paired, pair
from gateway.conversation.rules import RuleCode, violation
from gateway.types import Conversation, ToolCall, Turn, Violation

# How many ids a sentence lists before it breaks off.
NAMED: Final = 5


def validate(conversation: Conversation) -> tuple[Violation, ...]:
    """All violations, by message index. Empty: any backend that keeps to the protocol takes the conversation."""
    faults = conversation.faults
    if not faults and is_paired(conversation.turns):
        return ()
    told = {(fault.rule, fault.index) for fault in faults}
    paired = [found for found in pairing_faults(conversation.turns) if (found.rule, found.index) not in told]
    return tuple(sorted((*faults, *paired), key=lambda found: found.index))


def pairing_faults(turns: Sequence[Turn]) -> Iterator[Violation]:
    """The violations that the turns themselves show."""
    if not turns:
        yield violation("MESSAGES_EMPTY", -1, param="messages")
    pairing = pair(turns)
    yield from _call_faults(turns, pairing)
    for position, results in pairing.results.items():
        for place in (ResultAt(position, ordinal) for ordinal in range(len(results))):
            if not _answers_in_place(pairing, place):
                yield result_fault(turns, pairing, place)


def index_of(turns: Sequence[Turn], position: int) -> int:
    """Where the client knows the turn: its index in the request, or its position if it never was in one."""
    index = turns[position].index
    return position if index is None else index


def _call_faults(turns: Sequence[Turn], pairing: Pairing) -> Iterator[Violation]:
    users: dict[str, int] = {}
    for position, calls in pairing.calls.items():
        index = index_of(turns, position)
        for ordinal, call in enumerate(calls):
            param = f"messages[{index}].tool_calls[{ordinal}].id"
            if not call.id:
                yield violation("CALL_ID_MISSING", index, param=param)
            elif call.id in users:
                detail = f"the id {call.id!r} names a call of messages[{users[call.id]}] already"
                yield violation("CALL_ID_DUPLICATE", index, param=param, detail=detail, tool_call_id=call.id)
            users.setdefault(call.id, index)
        missing = [call for ordinal, call in enumerate(calls) if not _in_place(pairing, CallAt(position, ordinal))]
        if missing:
            yield _unanswered(index, calls, missing)


def _in_place(pairing: Pairing, call: CallAt) -> bool:
    """Whether the call's answer stands in the run of tool turns directly after it."""
    answer = pairing.answers.get(call)
    return answer is not None and pairing.caller(answer.turn) == call.turn


def _unanswered(index: int, calls: Sequence[ToolCall], missing: Sequence[ToolCall]) -> Violation:
    names = ", ".join(repr(call.id) for call in missing[:NAMED]) + (", ..." if len(missing) > NAMED else "")
    return violation(
        "CALLS_UNANSWERED",
        index,
        param=f"messages[{index}].tool_calls",
        detail=f"{len(missing)} of {len(calls)} calls have no tool message directly after the message: {names}",
        tool_call_id=missing[0].id,
    )


def _answers_in_place(pairing: Pairing, place: ResultAt) -> bool:
    """Whether the result answers, by its id, a call of the turn whose run it stands in."""
    call = pairing.call_of(place)
    if call is None or pairing.caller(place.turn) != pairing.answered[place].turn:
        return False
    return bool(call.id) and call.id == pairing.results[place.turn][place.ordinal].call_id


def result_fault(turns: Sequence[Turn], pairing: Pairing, place: ResultAt) -> Violation:
    """What is wrong with a result that does not answer in its place."""
    index = index_of(turns, place.turn)
    call_id = pairing.results[place.turn][place.ordinal].call_id
    rule, detail = _judge(turns, pairing, place, call_id)
    call = pairing.answered.get(place)
    if call is not None and pairing.caller(place.turn) != call.turn:
        detail = f"{detail}; the call it answers is in messages[{index_of(turns, call.turn)}]"
    field = "role" if rule == "TOOL_ORPHAN" else "tool_call_id"
    return violation(rule, index, param=f"messages[{index}].{field}", detail=detail, tool_call_id=call_id or None)


def _judge(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, call_id: str) -> tuple[RuleCode, str]:
    if not call_id:
        return "TOOL_ID_MISSING", ""
    duplicate = pairing.duplicates.get(place)
    if duplicate is not None:
        said = index_of(turns, duplicate.turn)
        return "TOOL_ID_DUPLICATE", f"the call {call_id!r} of messages[{said}] has its tool message already"
    start = pairing.caller(place.turn)
    if start is None:
        return "TOOL_ORPHAN", _orphan(turns, pairing.before[place.turn])
    return "TOOL_ID_UNKNOWN", f"{call_id!r} is the id of none of the calls of messages[{index_of(turns, start)}]"


def _orphan(turns: Sequence[Turn], before: int) -> str:
    """Clients that store only role and content lose the calls: that is worth telling."""
    if before >= 0 and turns[before].role == "assistant":
        return f"the tool message follows messages[{index_of(turns, before)}], which has lost its tool_calls"
    return "the tool message does not follow an assistant message with tool_calls"
