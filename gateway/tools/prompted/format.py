"""What one way of writing tool calls as text has to offer: how they are asked for, shown in the history, and read."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gateway.tools.prompted.parser import Mark, ToolCallParser
from gateway.types import JsonObject, ToolChoice, ToolSpec


class Constraint(msgspec.Struct, frozen=True):
    """What a backend that can constrain its decoding is told, so that the answer is exactly one call.

    The prompt ends with `prefill`; the backend writes one JSON value that fits `schema`, and ends at `stop`.
    The parser must be fed `prefill` before the first piece of the answer.
    """

    schema: JsonObject
    prefill: str = ""
    stop: tuple[str, ...] = ()


class ToolFormat(Protocol):
    """One format, without state. `FORMATS` in `gateway.tools.prompted.formats` has them by name."""

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts by which a model goes on to write the tool's result itself; the answer should end before them."""
        ...

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        """The section for the system text: the tools and how to call them. Empty without tools, or when the choice
        is none. The same input gives the same text."""
        ...

    def render_call(self, name: str, arguments: str) -> str:
        """A call of the history, exactly as the parser reads it. Arguments that are no JSON object are shown too."""
        ...

    def render_result(self, call_id: str, name: str, text: str) -> str | None:
        """A result of the history; None when the format has no way of its own, and the transcript's labels do."""
        ...

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        """A parser for one answer. Without tools, or when the choice is none, it lets every text through untouched.

        The ids of its calls are the prefix and a number, so the prefix must differ from answer to answer
        (`gateway.tools.prompted.ids`). `also` adds marks, such as those of `gateway.tools.prompted.prose`.
        """
        ...

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """What makes a backend write a call when one is required; None when none is, or the format has no schema."""
        ...
