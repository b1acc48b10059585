"""Sorts the results of parallel calls into the order of their calls.

A reader of a text pairs calls and results by their order: not every style writes the ids at both of them, and small
models do not compare ids.
"""

from collections.abc import Sequence

from gateway.core.conversation import Turn
from gateway.core.notices import Notice


def in_call_order(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Sorts the results directly behind each turn with calls by the order of these calls.

    Results with equal or unknown ids keep their order. Turns that are sorted already stay unchanged; of a turn with
    several results that are not, each result becomes a turn.
    """
    ordered: list[Turn] = []
    notices: list[Notice] = []
    position = 0
    while position < len(turns):
        turn = turns[position]
        position += 1
        ordered.append(turn)
        if turn.role == "assistant" and len(turn.calls) > 1:
            stop = position
            while stop < len(turns) and turns[stop].results:
                stop += 1
            ordered += _in_order(turn, turns[position:stop], notices)
            position = stop
    return tuple(ordered), notices


def _in_order(calling: Turn, answering: Sequence[Turn], notices: list[Notice]) -> Sequence[Turn]:
    calls = calling.calls
    ranks: dict[str, int] = {}
    for rank, call in enumerate(calls):
        ranks.setdefault(call.id, rank)
    results = [(turn, result) for turn in answering for result in turn.results]
    in_order = sorted(results, key=lambda found: ranks.get(found[1].call_id, len(calls)))
    if in_order == results:
        return answering
    detail = f"the results of {len(calls)} calls were put into the order of their calls"
    notices.append(Notice("flatten", "moved", "RESULTS_IN_CALL_ORDER", detail, calling.index))
    return [turn if len(turn.results) == 1 else turn.changed(result) for turn, result in in_order]
