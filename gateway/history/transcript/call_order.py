"""Sorts the results of parallel calls into the order of their calls.

A reader of a text pairs calls and results by their order: not every style writes the ids at both of them, and small
models do not compare ids.
"""

from collections.abc import Sequence

from gateway.core.conversation import Turn
from gateway.core.notices import Notice


def in_call_order(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Sorts the tool turns directly behind each turn with calls by the order of these calls.

    Results with equal or unknown ids keep their order. Turns that are sorted already stay unchanged.
    """
    ordered = list(turns)
    notices: list[Notice] = []
    for position, turn in enumerate(turns):
        if turn.role == "assistant" and len(turn.calls) > 1:
            _order_results(ordered, position, notices)
    return tuple(ordered), notices


def _order_results(turns: list[Turn], calling: int, notices: list[Notice]) -> None:
    calls = turns[calling].calls
    ranks: dict[str, int] = {}
    for rank, call in enumerate(calls):
        ranks.setdefault(call.id, rank)
    stop = calling + 1
    while stop < len(turns) and turns[stop].results:
        stop += 1
    results = turns[calling + 1 : stop]
    in_order = sorted(results, key=lambda turn: min(ranks.get(result.call_id, len(calls)) for result in turn.results))
    if in_order != results:
        turns[calling + 1 : stop] = in_order
        detail = f"the results of {len(calls)} calls were put into the order of their calls"
        notices.append(Notice("flatten", "moved", "RESULTS_IN_CALL_ORDER", detail, turns[calling].index))
