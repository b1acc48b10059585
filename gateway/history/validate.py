"""Finds every violation of the message protocol, with rule, message index, tool call id and the client's own path.

The dialect has listed the faults of shape while it read the request; this module adds the faults of pairing. The rule
of OpenAI's API: an assistant message with tool_calls is followed directly by one tool message for each call, in any
order, and a tool message stands nowhere else. In addition, a call id names one call of the whole conversation, because
several providers refuse a repeated id.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.core.conversation import Conversation, ToolCall, ToolResult, Turn, Violation, index_of, item_of
from gateway.core.field_paths import FieldPaths
from gateway.core.rules import RuleCode, violation
from gateway.history.first_turn import wrong_first_turn
from gateway.history.pairing import CallAt, Pairing, ResultAt, is_paired, pair
from gateway.providers.profile import NEUTRAL, Profile

# The number of ids that a sentence lists before it breaks off.
NAMED: Final = 5


def validate(conversation: Conversation, profile: Profile = NEUTRAL) -> tuple[Violation, ...]:
    """Returns all violations, by message index. Empty: any backend that follows the protocol accepts the conversation.

    A profile adds its provider's rules of order beyond the protocol, and removes the rules that the provider lacks.
    """
    faults, turns, paths = conversation.faults, conversation.turns, conversation.paths
    opening = first_turn_fault(turns, profile, paths)
    if turns and not faults and opening is None and is_paired(turns):
        return ()
    if not turns and all(fault.index < 0 for fault in faults):
        return (violation("MESSAGES_EMPTY", -1, param=paths.param("messages"), paths=paths), *faults)
    reported = {(fault.rule, fault.index) for fault in faults}
    shown = [] if opening is None else [opening]
    shown += pairing_faults(turns, paths, profile)
    found = [one for one in shown if (one.rule, one.index) not in reported]
    return tuple(sorted((*faults, *found), key=lambda one: one.index))


def first_turn_fault(turns: Sequence[Turn], profile: Profile, paths: FieldPaths) -> Violation | None:
    """Returns the violation when the provider requires the user to begin and another role does."""
    position = wrong_first_turn(turns, profile)
    if position is None:
        return None
    index, role = index_of(turns, position), turns[position].role
    detail = f"the first message after the system messages has the role {role!r}; this provider requires user"
    return violation("FIRST_TURN_ROLE", index, param=paths.role.format(turn=index), detail=detail, paths=paths)


def pairing_faults(turns: Sequence[Turn], paths: FieldPaths, profile: Profile = NEUTRAL) -> Iterator[Violation]:
    """Yields the violations of calls and results that follow from the turns themselves."""
    pairing = pair(turns)
    yield from _call_faults(turns, pairing, profile, paths)
    for position, results in pairing.results.items():
        for place in (ResultAt(position, ordinal) for ordinal in range(len(results))):
            if not _answers_in_place(pairing, place):
                yield result_fault(turns, pairing, place, paths)


def _call_faults(turns: Sequence[Turn], pairing: Pairing, profile: Profile, paths: FieldPaths) -> Iterator[Violation]:
    users: dict[str, int] = {}
    for position, calls in pairing.calls.items():
        index = index_of(turns, position)
        for ordinal, call in enumerate(calls):
            if call.id_derived:
                continue
            param = paths.call_id.format(turn=index, item=item_of(call, ordinal))
            if not call.id:
                yield violation("CALL_ID_MISSING", index, param=param, paths=paths)
            elif call.id in users and profile.reused_ids == "rename":
                detail = f"the id {call.id!r} names a call of {paths.turn.format(turn=users[call.id])} already"
                yield violation(
                    "CALL_ID_DUPLICATE", index, param=param, detail=detail, tool_call_id=call.id, paths=paths
                )
            users.setdefault(call.id, index)
        missing = [ordinal for ordinal in range(len(calls)) if not _in_place(pairing, CallAt(position, ordinal))]
        if missing:
            yield _unanswered(index, calls, missing, paths)


def _in_place(pairing: Pairing, call: CallAt) -> bool:
    """Returns whether the call's result stands in the run of tool turns directly after it."""
    answer = pairing.answers.get(call)
    return answer is not None and pairing.caller(answer.turn) == call.turn


def _unanswered(index: int, calls: Sequence[ToolCall], missing: Sequence[int], paths: FieldPaths) -> Violation:
    names = ", ".join([called(calls[ordinal], paths) for ordinal in missing[:NAMED]])
    more = ", ..." if len(missing) > NAMED else ""
    first = calls[missing[0]]
    return violation(
        "CALLS_UNANSWERED",
        index,
        param=paths.calls.format(turn=index, item=item_of(first, missing[0])),
        detail=f"{len(missing)} of {len(calls)} calls have no {paths.result_term} directly after the message: "
        f"{names}{more}",
        tool_call_id=None if first.id_derived else first.id,
        paths=paths,
    )


def called(call: ToolCall, paths: FieldPaths) -> str:
    """Names a call for its client: by its id, or by its function where it has no id."""
    return f"the {paths.unnamed_call_term} of {call.name!r}" if call.id_derived else repr(call.id)


def _answers_in_place(pairing: Pairing, place: ResultAt) -> bool:
    """Returns whether the result answers, by its id or by its only name, a call of the turn before its run."""
    call = pairing.call_of(place)
    if call is None or pairing.caller(place.turn) != pairing.answered[place].turn:
        return False
    result = pairing.results[place.turn][place.ordinal]
    return result.id_derived or (bool(call.id) and call.id == result.call_id)


def result_fault(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, paths: FieldPaths) -> Violation:
    """Returns the violation of a result that stands in the wrong place."""
    index = index_of(turns, place.turn)
    result = pairing.results[place.turn][place.ordinal]
    rule, detail = _judge(turns, pairing, place, paths)
    call = pairing.answered.get(place)
    if call is not None and pairing.caller(place.turn) != call.turn:
        detail = f"{detail}; the call it answers is in {_path(turns, call.turn, paths)}"
    template = _result_template(rule, result, paths)
    param = template.format(turn=index, item=item_of(result, place.ordinal))
    call_id = None if result.id_derived else result.call_id or None
    return violation(rule, index, param=param, detail=detail, tool_call_id=call_id, paths=paths)


def _result_template(rule: RuleCode, result: ToolResult, paths: FieldPaths) -> str:
    if rule == "TOOL_ORPHAN":
        return paths.result
    return paths.result_name if result.id_derived else paths.result_call_id


def _path(turns: Sequence[Turn], position: int, paths: FieldPaths) -> str:
    return paths.turn.format(turn=index_of(turns, position))


def _judge(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, paths: FieldPaths) -> tuple[RuleCode, str]:
    result = pairing.results[place.turn][place.ordinal]
    call_id = result.call_id
    if not call_id:
        return "TOOL_ID_MISSING", ""
    duplicate = pairing.duplicates.get(place)
    if duplicate is not None:
        where = _path(turns, duplicate.turn, paths)
        return "TOOL_ID_DUPLICATE", f"the call {call_id!r} of {where} already has its {paths.result_term}"
    start = pairing.caller(place.turn)
    if start is None:
        return "TOOL_ORPHAN", _orphan(turns, pairing.before[place.turn], paths)
    where = _path(turns, start, paths)
    if result.id_derived:
        return "TOOL_ID_UNKNOWN", f"no open call of {where} is a call of {turns[place.turn].name!r}"
    return "TOOL_ID_UNKNOWN", f"no call of {where} has the id {call_id!r}"


def _orphan(turns: Sequence[Turn], before: int, paths: FieldPaths) -> str:
    """Clients that store only role and content lose the calls: the message names this cause."""
    if before >= 0 and turns[before].role == "assistant":
        where = _path(turns, before, paths)
        return f"the {paths.result_term} follows {where}, which has no {paths.calls_term}"
    return f"the {paths.result_term} does not follow an assistant message with {paths.calls_term}"
