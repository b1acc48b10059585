"""Places the pieces of reasoning of an answer among its text and its calls, for a client that keeps them apart."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gateway.core.conversation import Block, Reasoning, Text, ToolCall, Turn


class Thought(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A piece of reasoning: its text, its state, and its place: behind `calls` calls of the answer, and behind its text
    or before it."""

    text: str
    extra: dict[str, Any] = {}
    calls: int = 0
    behind_text: bool = False


def with_thoughts(turn: Turn, thoughts: Sequence[Thought], field: str = "reasoning_content") -> Iterator[Block]:
    """Yields the blocks with each piece of reasoning at its place among the text and the calls."""
    waiting = list(thoughts)
    calls = 0

    def due(*, behind_text: bool) -> Iterator[Reasoning]:
        while waiting and (waiting[0].calls < calls or _is_next(waiting[0], calls, behind_text)):
            thought = waiting.pop(0)
            yield Reasoning(thought.text, field, thought.extra)

    yield from due(behind_text=False)
    for block in turn.blocks:
        if isinstance(block, Reasoning):
            continue
        if not isinstance(block, Text):
            yield from due(behind_text=True)
        yield block
        calls += isinstance(block, ToolCall)
    for thought in waiting:
        yield Reasoning(thought.text, field, thought.extra)


def _is_next(thought: Thought, calls: int, behind_text: bool) -> bool:
    return thought.calls == calls and (behind_text or not thought.behind_text)
