"""Records the inputs of a state machine while it runs, and follows them through its table."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from types import ModuleType
from typing import TypeVar

import pytest

State = TypeVar("State", bound=IntEnum)
Input = TypeVar("Input", bound=str)


class _Row(dict[str, IntEnum]):
    def __init__(self, row: Mapping[str, IntEnum], seen: list[str]) -> None:
        super().__init__(row)
        self._seen = seen

    def __getitem__(self, given: str) -> IntEnum:
        self._seen.append(given)
        return super().__getitem__(given)


def record(monkeypatch: pytest.MonkeyPatch, name: str, *modules: ModuleType) -> list[str]:
    """The inputs that these modules look up in their table of this name, from now on."""
    seen: list[str] = []
    table: Mapping[IntEnum, Mapping[str, IntEnum]] = getattr(modules[0], name)
    recorded = {state: _Row(row, seen) for state, row in table.items()}
    for module in modules:
        monkeypatch.setattr(module, name, recorded)
    return seen


def arrows(table: Mapping[State, Mapping[Input, State]]) -> set[tuple[State, Input]]:
    """Every state with every input that may occur in it."""
    return {(state, given) for state, row in table.items() for given in row}


def followed(
    table: Mapping[State, Mapping[Input, State]], first: State, inputs: Iterable[Input]
) -> set[tuple[State, Input]]:
    """The arrows that these inputs take from the first state on."""
    taken = set()
    state = first
    for given in inputs:
        taken.add((state, given))
        state = table[state][given]
    return taken


async def seen_all(seen: Sequence[str], expected: Sequence[str], seconds: float = 4) -> bool:
    """Whether these inputs, and no others, are seen within a time. Returns as soon as there are enough."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while len(seen) < len(expected):  # noqa: ASYNC110 (a list tells nobody when it grows)
                await asyncio.sleep(0.002)
    return seen == expected


def markdown(table: Mapping[State, Mapping[Input, State]], inputs: Sequence[Input]) -> str:
    """The table as a page shows it: a row for each state, a column for each input."""
    lines = [f"| state | {' | '.join(inputs)} |", f"| --- |{' --- |' * len(inputs)}"]
    for state, row in table.items():
        following = [f"`{row[given].name}`" if given in row else "" for given in inputs]
        lines.append(f"| `{state.name}` | {' | '.join(following)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines)
