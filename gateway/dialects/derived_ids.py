"""Derives ids for calls and results of a form without ids, in which a result names a function instead of an id."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from gateway.core.conversation import Block, ToolCall, ToolResult, Turn

_PREFIX: Final = "call_function_"


class DerivedIds(NamedTuple):
    """The turns, in which every call and every result with `id_derived` has an id.

    `mixed` are the indexes of the turns whose result names a function, and answers a call with an id of the client's.
    """

    turns: tuple[Turn, ...]
    mixed: tuple[int, ...] = ()


def derive_ids(turns: Sequence[Turn]) -> DerivedIds:
    """Gives every call without an id a derived one, and every result that names a function the id of its call.

    The id is derived from the call's position, so that a growing history keeps its ids. By OpenAI's reference the name
    tells which call is answered. Of several calls of one name the answered one is the first open call among the nearest
    calls: those without another message between them. A call that a result of the same batch names by its id is not
    open, wherever that result stands. A result that names none of the calls before it gets an id of its own, so that it
    is not taken for a result of another call. Linear in the number of blocks.
    """
    ids = _Ids(turns)
    named = tuple([ids.derive(turn, position) for position, turn in enumerate(turns)])
    return DerivedIds(named, tuple(ids.mixed))


class _Ids:
    """The ids that the client uses, and the calls so far."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._batch_end = 0
        self._theirs = {call.id for turn in turns for call in turn.calls if not call.id_derived}
        self._theirs |= {result.call_id for turn in turns for result in turn.results if not result.id_derived}
        self._calls = _OpenFunctions()
        self.mixed: list[int] = []

    def derive(self, turn: Turn, position: int) -> Turn:
        """Returns the next turn, its calls and results with ids."""
        if not (turn.calls or turn.results):
            return turn
        if turn.results and position >= self._batch_end:
            self._reserve(position)
        blocks: list[Block] = []
        derived = 0
        for block in turn.blocks:
            if type(block) is ToolCall:
                blocks.append(self._call(block, turn, derived, position))
                derived += block.id_derived
            else:
                blocks.append(self._result(block, turn) if type(block) is ToolResult else block)
        return msgspec.structs.replace(turn, blocks=tuple(blocks))

    def _reserve(self, position: int) -> None:
        """Closes the calls that the batch of results which begins here names by their ids."""
        self._batch_end = position
        while self._batch_end < len(self._turns) and (results := self._turns[self._batch_end].results):
            self._calls.named.update([result.call_id for result in results if not result.id_derived])
            self._batch_end += 1

    def _call(self, call: ToolCall, turn: Turn, ordinal: int, position: int) -> ToolCall:
        if call.id_derived:
            call = msgspec.structs.replace(call, id=self._free(turn, ordinal))
        self._calls.open(position, call)
        return call

    def _result(self, result: ToolResult, turn: Turn) -> ToolResult:
        return msgspec.structs.replace(result, call_id=self._answered(turn)) if result.id_derived else result

    def _answered(self, turn: Turn) -> str:
        call_id = self._calls.close(turn.name)
        if call_id in self._theirs and turn.index is not None:
            self.mixed.append(turn.index)
        return call_id or self._free(turn)

    def _free(self, turn: Turn, ordinal: int = 0) -> str:
        """Derives an unused id from a position."""
        made = f"{_PREFIX}{turn.index}_{ordinal}" if ordinal else f"{_PREFIX}{turn.index}"
        while made in self._theirs:
            made += "_"
        return made


class _OpenFunctions:
    """The calls that a later message may still answer, by name, in runs of directly consecutive turns.

    `named` counts the results that name a call by its id, since that id was used last.
    """

    def __init__(self) -> None:
        self.named: Counter[str] = Counter()
        self._runs: dict[str | None, list[deque[tuple[str, int]]]] = {}
        self._latest = -1
        self._run: dict[str | None, deque[tuple[str, int]]] = {}
        self._used: dict[str, int] = {}

    def open(self, position: int, call: ToolCall) -> None:
        """Adds a call of the turn at this position."""
        if position - self._latest > 1:
            self._run = {}
        self._latest = position
        run = self._run.get(call.name)
        if run is None:
            run = self._run[call.name] = deque()
            self._runs.setdefault(call.name, []).append(run)
        run.append((call.id, position))
        if self._used.get(call.id) != position:
            self._used[call.id] = position
            del self.named[call.id]

    def close(self, name: str | None) -> str | None:
        """Returns the id of the call that a result of this function answers, and closes the call."""
        runs = self._runs.get(name, [])
        while runs:
            while runs[-1]:
                call_id, position = runs[-1].popleft()
                # A repeated id binds to the client's latest turn with it.
                if self._used[call_id] != position:
                    continue
                if not self.named[call_id]:
                    return call_id
                self.named[call_id] -= 1
            runs.pop()
        return None
