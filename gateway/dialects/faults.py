"""Collects the violations of shape in a request, in the order of its messages."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.core.conversation import Violation
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.rules import RuleCode, violation

# Of one kind that a few bytes can repeat, so many are reported one by one, and the others in one: the report of a fault
# takes a hundred times the memory.
_MOST_LISTED: Final = 100


class Faults(msgspec.Struct):
    """A list of violations that names places by their path in the client's request.

    `paths` are those of the dialect, which gives every place inside a turn as the rest of the turn's path. So many
    turns or items as `earlier` says stand before those of the request: they have the indexes below 0.
    """

    found: list[Violation] = []
    paths: FieldPaths = CANONICAL_PATHS
    earlier: int = 0

    def add(self, rule: RuleCode, index: int, place: str, detail: str = "", tool_call_id: str | None = None) -> None:
        """Adds a broken rule at `place` inside turn `index`, counted from the first earlier one (-1: inside the request
        itself)."""
        paths = self.paths
        param = place
        if index >= 0:
            index -= self.earlier
            param = f"{paths.turn.format(turn=index)}{place}"
        self.found.append(violation(rule, index, param=param, detail=detail, tool_call_id=tool_call_id, paths=paths))

    def add_each(self, rule: RuleCode, count: int, nth: Callable[[int], tuple[int, str, str]], others: str) -> None:
        """The same rule, broken so many times: `nth` gives the message, the place inside it and the detail of one.
        `others` is the detail of those that are reported together, behind their number."""
        for n in range(min(count, _MOST_LISTED)):
            self.add(rule, *nth(n))
        if count > _MOST_LISTED:
            index, place, _ = nth(_MOST_LISTED)
            self.add(rule, index, place, f"{count - _MOST_LISTED} more {others}")
