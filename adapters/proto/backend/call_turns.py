"""Gives each call a turn of its own, for a wire whose messages hold one call."""

from collections.abc import Iterator, Sequence

import msgspec

from gateway.core.conversation import EMPTY, Block, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice


def one_call_a_turn(turns: Sequence[Turn], *, paired_by_place: bool) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Returns the turns, of which each has at most one call, in order: what stands before a call is in its turn.

    `paired_by_place`: the wire has no ids, so that the results of each call follow it directly, with a notice if that
    moved one. Results of unknown calls follow those of the last call.
    """
    made: list[Turn] = []
    notices: list[Notice] = []
    position = 0
    while position < len(turns):
        turn = turns[position]
        position += 1
        parts = [*_split(turn)] if len(turn.calls) > 1 else [turn]
        stop = position
        while turn.calls and paired_by_place and stop < len(turns) and turns[stop].role == "tool":
            stop += 1
        results = turns[position:stop]
        paired = [*_paired(parts, results)] if results else parts
        if paired != [*parts, *results]:
            notices.append(_moved(turn))
        made += paired
        position = stop
    return tuple(made), notices


def _split(turn: Turn) -> Iterator[Turn]:
    """Yields the turn in pieces that end with a call; what stands behind the last call belongs to its piece."""
    ends = [place + 1 for place, block in enumerate(turn.blocks) if isinstance(block, ToolCall)]
    extra = turn.extra
    for start, end in zip([0, *ends[:-1]], [*ends[:-1], len(turn.blocks)], strict=True):
        yield msgspec.structs.replace(turn.changed(*turn.blocks[start:end]), extra=extra)
        extra = EMPTY


def _paired(parts: Sequence[Turn], answering: Sequence[Turn]) -> Iterator[Turn]:
    """Yields each part with its results behind it, those of unknown calls last; the calls of one id get their results
    one by one."""
    ranks: dict[str, list[int]] = {}
    for rank, part in enumerate(parts):
        ranks.setdefault(part.calls[0].id, []).append(rank)
    behind: list[list[Turn]] = [[] for _ in [*parts, None]]
    for turn in answering:
        found: dict[int, list[Block]] = {}
        for block in turn.blocks:
            known = ranks.get(block.call_id, []) if isinstance(block, ToolResult) else []
            rank = known.pop(0) if len(known) > 1 else [*known, len(parts)][0]
            found.setdefault(rank, []).append(block)
        for rank, blocks in found.items():
            behind[rank].append(turn if len(found) == 1 else turn.changed(*blocks))
    for part, results in zip(parts, behind, strict=False):
        yield part
        yield from results
    yield from behind[-1]


def _moved(turn: Turn) -> Notice:
    detail = "each result was put behind its call: the wire has one call a message"
    return Notice("flatten", "moved", "RESULTS_IN_CALL_ORDER", detail, index=turn.index)
