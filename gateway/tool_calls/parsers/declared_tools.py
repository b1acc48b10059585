"""Holds the tools that a response may call, with the types of their parameters."""

from collections.abc import Sequence

from gateway.core.conversation import ToolSpec
from gateway.tool_calls.parsers.coerce import STRING, is_described, types_of


class Declared(dict[str, ToolSpec]):
    """The tools that may be called, by name."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__({tool.name: tool for tool in tools})
        self._types: dict[tuple[str, str], frozenset[str]] = {}

    def types_of(self, name: str, key: str) -> frozenset[str]:
        """Returns the JSON types of a tool's parameter, read from its schema once for all calls of a response."""
        parameters = self[name].parameters
        if not is_described(parameters, key):
            return STRING
        if (name, key) not in self._types:
            self._types[name, key] = types_of(parameters, key)
        return self._types[name, key]
