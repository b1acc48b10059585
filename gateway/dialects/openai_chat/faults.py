"""The violations of shape that reading a request meets, in the order of its messages."""

import msgspec

from gateway.conversation.rules import RuleCode, violation
from gateway.types import Violation


class Faults(msgspec.Struct):
    """A list that knows how the client names a place in its request."""

    found: list[Violation] = []

    def add(self, rule: RuleCode, index: int, place: str, detail: str = "", tool_call_id: str | None = None) -> None:
        """A broken rule at `place` inside message `index` (-1: inside the request itself)."""
        param = place if index < 0 else f"messages[{index}]{place}"
        self.found.append(violation(rule, index, param=param, detail=detail, tool_call_id=tool_call_id))
