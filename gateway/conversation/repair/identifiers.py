"""Missing and repeated call ids -> ids that name one call each, in the call and in its answer."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.conversation.pairing import CallAt, Pairing
from gateway.conversation.validate import index_of
from gateway.notices import Notice
from gateway.types import Block, ToolCall, ToolResult, Turn

# The shortest limit on ids that a provider is known to enforce, and what a number behind an id needs of it.
LONGEST: Final = 40
SUFFIX: Final = 6


def mend_ids(turns: Sequence[Turn], pairing: Pairing) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Every call gets an id that no earlier call has, every answer the id of its call; positions stay.

    A new id is made from the call's place or from the id it had, and depends on nothing that comes later, so that a
    growing conversation keeps its ids and the provider's prompt cache its prefix.
    """
    names = _Names()
    renamed: dict[int, dict[int, str]] = {}
    notices: list[Notice] = []
    for position, calls in pairing.calls.items():
        for ordinal, call in enumerate(calls):
            name = names.take(call.id or f"call_{index_of(turns, position)}_{ordinal}")
            if name != call.id:
                renamed.setdefault(position, {})[ordinal] = name
                notices.append(_call_notice(call, name, turns[position].index))
            answer = pairing.answers.get(CallAt(position, ordinal))
            if answer is None:
                continue
            said = pairing.results[answer.turn][answer.ordinal].call_id
            if said != name:
                renamed.setdefault(answer.turn, {})[answer.ordinal] = name
            if not said or said != call.id:
                notices.append(_result_notice(said, name, turns[answer.turn].index))
    mended = list(turns)
    for position, changes in renamed.items():
        mended[position] = _rename(turns[position], changes)
    return tuple(mended), notices


class _Names:
    """The ids given so far. A repeated one gets the first free number behind it: a, a_2, a_3, ..."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """The id itself if it is free, else one derived from it."""
        fits = len(wanted) <= LONGEST - SUFFIX or len(wanted) > LONGEST
        base = wanted if fits else wanted[: LONGEST - SUFFIX]
        name, number = wanted, self._numbers.get(base, 1)
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        self._taken.add(name)
        return name


def _rename(turn: Turn, names: Mapping[int, str]) -> Turn:
    """The turn with other ids; `names` goes by the ordinal of the call or, in a tool turn, of the result."""
    blocks: list[Block] = []
    ordinal = 0
    for block in turn.blocks:
        if isinstance(block, ToolCall) and turn.role == "assistant":
            block = msgspec.structs.replace(block, id=names.get(ordinal, block.id))
            ordinal += 1
        elif isinstance(block, ToolResult) and turn.role == "tool":
            block = msgspec.structs.replace(block, call_id=names.get(ordinal, block.call_id))
            ordinal += 1
        blocks.append(block)
    return turn.changed(*blocks)


def _call_notice(call: ToolCall, name: str, index: int | None) -> Notice:
    if not call.id:
        detail = f"a call of {call.name!r} had no id; it is {name!r} now, in its result, too"
        return Notice("repair", "changed", "CALL_ID_MISSING", detail, index, name)
    detail = f"the id {call.id!r} names an earlier call; this call of {call.name!r} is {name!r} now, in its result, too"
    return Notice("repair", "changed", "CALL_ID_DUPLICATE", detail, index, name)


def _result_notice(said: str, name: str, index: int | None) -> Notice:
    if not said:
        detail = f"a tool message had no tool_call_id; by its position it answers {name!r}"
        return Notice("repair", "changed", "TOOL_ID_MISSING", detail, index, name)
    detail = f"no call has the id {said!r}; by its position the tool message answers {name!r}, whose id was missing"
    return Notice("repair", "changed", "TOOL_ID_UNKNOWN", detail, index, name)
