"""Results anywhere -> every call followed directly by its answers; what answers no call leaves the tool role."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from gateway.conversation.pairing import CallAt, Pairing, ResultAt
from gateway.conversation.repair.orphans import note
from gateway.conversation.validate import index_of, result_fault
from gateway.notices import Notice
from gateway.types import Text, ToolResult, Turn

NO_RESULT: Final = (
    "Error: this tool call has no result in the conversation. It was skipped or interrupted; do not assume that it ran."
)


def settle(
    turns: Sequence[Turn], pairing: Pairing, orphaned_results: Literal["note", "drop"]
) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Put every answer behind its call, in the order in which the client sent them, and answer what has no answer.

    A further answer to an answered call is dropped. An orphan stays where it stood, as a user's note (behind the
    answers, if it stood among them), or is dropped. Turns that only move keep their source.
    """
    settled: list[Turn] = []
    notices: list[Notice] = []
    for position, turn in enumerate(turns):
        if position in pairing.calls:
            settled.append(turn)
            settled.extend(_answers(turns, pairing, position, notices))
        elif turn.role == "tool" and turn.results:
            settled.extend(_unbound(turns, pairing, position, orphaned_results, notices))
        else:
            settled.append(turn)
    return tuple(settled), notices


def _answers(turns: Sequence[Turn], pairing: Pairing, position: int, notices: list[Notice]) -> Iterator[Turn]:
    """The answers that exist, then one for every call that has none."""
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
            notices.extend(_moved(turns, pairing, ResultAt(tool_turn, ordinal), position) for ordinal in ordinals)
        yield _part(turns[tool_turn], ordinals)
    for call in missing:
        detail = f"the call {call.id!r} of {call.name!r} has no result; it is answered with an error"
        notices.append(Notice("repair", "added", "CALLS_UNANSWERED", detail, turns[position].index, call.id))
        yield Turn("tool", (ToolResult(call.id, (Text(NO_RESULT),), is_error=True, synthesized=True),))


def _part(turn: Turn, ordinals: Sequence[int]) -> Turn:
    """The tool turn with these of its results only; itself if they are all it holds."""
    if len(ordinals) == len(turn.blocks):
        return turn
    results = turn.results
    return turn.changed(*(results[ordinal] for ordinal in ordinals))


def _unbound(
    turns: Sequence[Turn],
    pairing: Pairing,
    position: int,
    orphaned_results: Literal["note", "drop"],
    notices: list[Notice],
) -> Iterator[Turn]:
    """What is left of a tool turn when its answers have gone to their calls."""
    turn = turns[position]
    for ordinal, result in enumerate(turn.results):
        place = ResultAt(position, ordinal)
        if place in pairing.answered:
            continue
        fault = result_fault(turns, pairing, place)
        dropped = place in pairing.duplicates or orphaned_results == "drop"
        ending = "the message is dropped" if dropped else "its content is kept as a user message"
        notices.append(
            Notice(
                "repair",
                "dropped" if dropped else "changed",
                fault.rule,
                f"{fault.detail.rstrip('.')}; {ending}",
                turn.index,
                fault.tool_call_id,
                "warning" if dropped else "info",
            )
        )
        if not dropped:
            yield note(turn, result)


def _moved(turns: Sequence[Turn], pairing: Pairing, place: ResultAt, position: int) -> Notice:
    turn = turns[place.turn]
    rule = result_fault(turns, pairing, place).rule
    detail = f"the result stood apart from its call; it follows messages[{index_of(turns, position)}] now"
    return Notice("repair", "moved", rule, detail, turn.index, turn.results[place.ordinal].call_id)
