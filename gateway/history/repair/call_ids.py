"""Replaces missing and repeated call ids by unique ones, in the call and in its result."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Block, ToolCall, ToolResult, Turn, index_of
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.history.pairing import CallAt, Pairing
from gateway.history.validate import called

# The shortest limit on ids that a provider is known to enforce, and the length that a numeric suffix takes of it.
LONGEST: Final = 40
SUFFIX: Final = 6


def repair_call_ids(
    turns: Sequence[Turn], pairing: Pairing, paths: FieldPaths, reused: Literal["rename", "keep"] = "rename"
) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Gives every call an id that no earlier call has, and every result the id of its call; positions stay.

    Where a provider interprets the ids (`reused`), existing ids stay, too. A new id is derived from the call's position
    or from its former id, and never from a later turn, so that a growing conversation keeps its ids and the provider's
    prompt cache its prefix.
    """
    names = _Names()
    renamed: dict[int, dict[int, str]] = {}
    notices: list[Notice] = []
    for position, calls in pairing.calls.items():
        for ordinal, call in enumerate(calls):
            if call.id and reused == "keep":
                name = names.keep(call.id)
            else:
                name = names.unused(call.id or f"call_{index_of(turns, position)}_{ordinal}")
            if name != call.id:
                renamed.setdefault(position, {})[ordinal] = name
                notices.append(_call_notice(call, name, turns[position].index))
            answer = pairing.answers.get(CallAt(position, ordinal))
            if answer is None:
                continue
            result = pairing.results[answer.turn][answer.ordinal]
            sent_id = result.call_id
            if sent_id != name:
                renamed.setdefault(answer.turn, {})[answer.ordinal] = name
            if not result.id_derived and (not sent_id or sent_id != call.id):
                notices.append(_result_notice(sent_id, call, name, turns[answer.turn].index, paths))
    repaired = list(turns)
    for position, changes in renamed.items():
        repaired[position] = _rename(turns[position], changes)
    return tuple(repaired), notices


class _Names:
    """The ids assigned so far. A repeated one gets the first free numeric suffix: a, a_2, a_3, ..."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def keep(self, name: str) -> str:
        """Returns the id itself, whether or not it is free."""
        self._taken.add(name)
        return name

    def unused(self, wanted: str) -> str:
        """Returns the id itself if it is free, else one derived from it."""
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
    """Returns the turn with other ids; the key of `names` is the ordinal of the call or, in a tool turn, the result."""
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
        detail = f"a call of {call.name!r} had no id; it and its result now have the id {name!r}"
        return Notice("repair", "changed", "CALL_ID_MISSING", detail, index=index, tool_call_id=name)
    detail = f"an earlier call has the id {call.id!r}; this call of {call.name!r} and its result are now {name!r}"
    return Notice("repair", "changed", "CALL_ID_DUPLICATE", detail, index=index, tool_call_id=name)


def _result_notice(sent_id: str, call: ToolCall, name: str, index: int | None, paths: FieldPaths) -> Notice:
    answered = called(call, paths) if call.id_derived else repr(name)
    call_id = None if call.id_derived else name
    if sent_id:
        detail = f"no call has the id {sent_id!r}; by its position the {paths.result_term} answers {answered}"
        detail += ", which has no id" if call.id_derived else ", whose id was missing"
        return Notice("repair", "changed", "TOOL_ID_UNKNOWN", detail, index=index, tool_call_id=call_id)
    if call.id_derived:
        detail = f"a message does not name its call; by its position it answers {answered}"
    else:
        detail = f"a {paths.result_term} had no {paths.call_id_term}; by its position it answers {answered}"
    return Notice("repair", "changed", "TOOL_ID_MISSING", detail, index=index, tool_call_id=call_id)
