"""Derives ids for calls and results of the deprecated form, which name a function instead of an id."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Block, ToolCall, ToolResult, Turn
from gateway.dialects.faults import Faults

_PREFIX: Final = "call_function_"


def derive_ids(turns: Sequence[Turn], faults: Faults) -> tuple[Turn, ...]:
    """Gives every `function_call` a derived id, and every `function` message the id of the call that it answers.

    The id is derived from the call's position. By OpenAI's reference the name tells which call is answered. Of several
    calls of one name the answered one is the first open call among the nearest calls: those without another message
    between them. A `function` message that names none of the calls before it gets an id of its own, so that it is not
    taken for a result of another call. Linear in the number of blocks. Fault: CALL_FORMS_MIXED, for a `function`
    message that answers one of `tool_calls`.
    """
    ids = _Ids(turns, faults)
    return tuple(
        msgspec.structs.replace(turn, blocks=tuple([ids.derive(block, turn, position) for block in turn.blocks]))
        for position, turn in enumerate(turns)
    )


class _Ids:
    """The ids that the client uses, and the calls so far."""

    def __init__(self, turns: Sequence[Turn], faults: Faults) -> None:
        self._theirs = {call.id for turn in turns for call in turn.calls if not call.id_derived}
        self._theirs |= {result.call_id for turn in turns for result in turn.results if not result.id_derived}
        self._calls = _OpenFunctions()
        self._faults = faults

    def derive(self, block: Block, turn: Turn, position: int) -> Block:
        """Returns the next block, with an id if it is a call or a result without one."""
        if isinstance(block, ToolCall):
            if block.id_derived:
                block = msgspec.structs.replace(block, id=self._free(turn))
            self._calls.open(position, block)
        elif isinstance(block, ToolResult):
            if block.id_derived:
                block = msgspec.structs.replace(block, call_id=self._answered(turn))
            if block.call_id:
                self._calls.answered.add(block.call_id)
        return block

    def _answered(self, turn: Turn) -> str:
        call_id = self._calls.close(turn.name)
        if call_id in self._theirs and turn.index is not None:
            detail = "a function message answers one of tool_calls; it is read as a tool message"
            self._faults.add("CALL_FORMS_MIXED", turn.index, ".role", detail)
        return call_id or self._free(turn)

    def _free(self, turn: Turn) -> str:
        """Derives an unused id from the turn's position, so that a growing history keeps its ids."""
        made = f"{_PREFIX}{turn.index}"
        while made in self._theirs:
            made += "_"
        return made


class _OpenFunctions:
    """The calls that a later message may still answer, by name, in runs of directly consecutive turns."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self._runs: dict[str | None, list[deque[str]]] = {}
        self._latest = -1
        self._run: dict[str | None, deque[str]] = {}
        self._names: dict[str, str] = {}

    def open(self, position: int, call: ToolCall) -> None:
        """Adds a call of the turn at this position."""
        if position - self._latest > 1:
            self._run = {}
        self._latest = position
        run = self._run.get(call.name)
        if run is None:
            run = self._run[call.name] = deque()
            self._runs.setdefault(call.name, []).append(run)
        run.append(call.id)
        self._names[call.id] = call.name

    def close(self, name: str | None) -> str | None:
        """Returns the id of the call that a result of this function answers, and closes the call."""
        runs = self._runs.get(name, [])
        while runs:
            while runs[-1]:
                call_id = runs[-1].popleft()
                # A repeated id binds to the client's latest call with it, of any function.
                if call_id not in self.answered and self._names[call_id] == name:
                    return call_id
            runs.pop()
        return None
