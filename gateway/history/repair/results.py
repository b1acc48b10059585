"""Moves every result directly behind its call. A result without a call loses the tool role: it becomes a user's note,
so that its content is not lost."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Conversation, Text, ToolResult, Turn, index_of
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.history.first_turn import opened, wrong_first_turn
from gateway.history.pairing import CallAt, Pairing, ResultAt, is_calling
from gateway.history.validate import called, result_fault
from gateway.providers.profile import Profile

NO_RESULT: Final = (
    "Error: this tool call has no result in the conversation. It was skipped or interrupted; do not assume that it ran."
)


def reorder_results(
    turns: Sequence[Turn], pairing: Pairing, orphaned_results: Literal["note", "drop"], paths: FieldPaths
) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Moves every result behind its call, in the client's order, and adds a result for every unanswered call.

    A further result of an answered call is dropped. An orphan stays at its position, as a user's note (behind the
    results, if it stood among them), or is dropped. Turns that only move keep their source.
    """
    ordered: list[Turn] = []
    notices: list[Notice] = []
    for position, turn in enumerate(turns):
        if position in pairing.calls:
            ordered.append(turn)
            ordered.extend(_answers(turns, pairing, position, paths, notices))
        elif turn.role == "tool" and turn.results:
            ordered.extend(_unbound(turns, pairing, position, orphaned_results, paths, notices))
        else:
            ordered.append(turn)
    return tuple(ordered), notices


def in_client_order(conversation: Conversation, notices: Sequence[Notice]) -> tuple[Conversation, tuple[Notice, ...]]:
    """Returns the conversation with each result that was moved at the client's place again, if that is behind its call,
    and the notices of the others."""
    turns = conversation.turns
    moved = {notice.index for notice in notices if notice.stage == "repair" and notice.action == "moved"}
    if not moved:
        return conversation, tuple(notices)
    places: list[int] = []
    last = called_at = min(turn.index for turn in turns if turn.index is not None)
    for turn in turns:
        at = last if turn.index is None else turn.index
        if turn.role == "tool" and at < called_at:
            # It stands before its call.
            moved.discard(at)
            at = called_at
        called_at = at if is_calling(turn) else called_at
        last = max(last, at)
        places.append(at)
    order = sorted(range(len(turns)), key=places.__getitem__)
    kept = tuple(
        [one for one in notices if not (one.stage == "repair" and one.action == "moved" and one.index in moved)]
    )
    return msgspec.structs.replace(conversation, turns=tuple([turns[at] for at in order])), kept


def begin(turns: tuple[Turn, ...], profile: Profile) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Puts a user turn before a first turn that the provider refuses."""
    position = wrong_first_turn(turns, profile)
    if position is None:
        return turns, []
    detail = f"a short user message is inserted before the first message, which has the role {turns[position].role!r}"
    return opened(turns, position), [Notice("repair", "added", "FIRST_TURN_ROLE", detail, index=turns[position].index)]


def _answers(
    turns: Sequence[Turn], pairing: Pairing, position: int, paths: FieldPaths, notices: list[Notice]
) -> Iterator[Turn]:
    """Yields the existing results of a calling turn, then a synthesized one for every call without a result."""
    found: dict[int, list[int]] = {}
    missing = []
    for ordinal, call in enumerate(turns[position].calls):
        answer = pairing.answers.get(CallAt(position, ordinal))
        if answer is None:
            missing.append(call)
        else:
            found.setdefault(answer.turn, []).append(answer.ordinal)
    for tool_turn, ordinals in sorted(found.items()):
        ordinals.sort()
        if pairing.caller(tool_turn) != position:
            notices.extend(
                _moved(turns, pairing, ResultAt(tool_turn, ordinal), position, paths) for ordinal in ordinals
            )
        yield _part(turns[tool_turn], ordinals)
    for call in missing:
        which = called(call, paths) if call.id_derived else f"the call {call.id!r} of {call.name!r}"
        detail = f"{which} has no result; an error result is added"
        call_id = None if call.id_derived else call.id
        notices.append(
            Notice("repair", "added", "CALLS_UNANSWERED", detail, index=turns[position].index, tool_call_id=call_id)
        )
        yield Turn("tool", (ToolResult(call.id, (Text(NO_RESULT),), is_error=True, synthesized=True),))


def _part(turn: Turn, ordinals: Sequence[int]) -> Turn:
    """Returns the tool turn with these of its results only; the same turn if they are all of them."""
    if len(ordinals) == len(turn.blocks):
        return turn
    results = turn.results
    return turn.changed(*(results[ordinal] for ordinal in ordinals))


def _unbound(
    turns: Sequence[Turn],
    pairing: Pairing,
    position: int,
    orphaned_results: Literal["note", "drop"],
    paths: FieldPaths,
    notices: list[Notice],
) -> Iterator[Turn]:
    """Reports every result of the turn that is bound to no call, and yields a note for each that is not dropped."""
    turn = turns[position]
    for ordinal, result in enumerate(turn.results):
        place = ResultAt(position, ordinal)
        if place in pairing.answered:
            continue
        fault = result_fault(turns, pairing, place, paths)
        dropped = place in pairing.duplicates or orphaned_results == "drop"
        ending = "the message is dropped" if dropped else "its content is kept as a user message"
        notices.append(
            Notice(
                "repair",
                "dropped" if dropped else "changed",
                fault.rule,
                f"{fault.detail.rstrip('.')}; {ending}",
                index=turn.index,
                tool_call_id=fault.tool_call_id,
                level="warning" if dropped else "info",
            )
        )
        if not dropped:
            yield note(turn, result)


def _moved(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, position: int, paths: FieldPaths) -> Notice:
    turn = turns[place.turn]
    rule = result_fault(turns, pairing, place, paths).rule
    caller = paths.turn.format(turn=index_of(turns, position))
    detail = f"the result did not follow its call; it now follows {caller}"
    result = turn.results[place.ordinal]
    return Notice(
        "repair", "moved", rule, detail, index=turn.index, tool_call_id=None if result.id_derived else result.call_id
    )


def note(turn: Turn, result: ToolResult) -> Turn:
    """Returns the result as user text under a heading that names it as a tool result.

    It is no tool turn, because every provider refuses one without its call. It is no assistant or system text, because
    foreign text must not gain authority.
    """
    content = result.content
    first = content[0] if content else None
    heading = _heading(turn, result)
    if isinstance(first, Text):
        content = (msgspec.structs.replace(first, text=f"{heading}\n{first.text}"), *content[1:])
    else:
        content = (Text(heading), *content)
    return msgspec.structs.replace(turn, role="user", blocks=content, name=None, source=None, synthesized=True)


def _heading(turn: Turn, result: ToolResult) -> str:
    kind = "Error result" if result.is_error else "Result"
    name = f" of {turn.name}" if turn.name else ""
    identity = f" (id {result.call_id})" if result.call_id and not result.id_derived else ""
    return f"[{kind} of a tool call{name} that is not in this conversation{identity}]"
