"""Formats calls as two labelled lines: `Action: NAME` and `Action Input: {...}`."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import ToolChoice, ToolSpec
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.format import Constraint, listed, rules
from gateway.tool_calls.parsers.json_scan import repaired_object
from gateway.tool_calls.parsers.labelled_call import LabelledReader
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser
from gateway.tool_calls.parsers.schema import callable_tools

_ACTION: Final = "Action:"
_INPUT: Final = "Action Input:"
_OBSERVATION: Final = "Observation:"

_SEVERAL: Final = "To call several functions, write two such lines for each, and then stop."


def read_call(declared: Declared) -> LabelledReader:
    return LabelledReader(declared, "\n", _INPUT)


class React(msgspec.Struct, frozen=True):
    """The format for models that were trained on this loop."""

    marks: tuple[Mark, ...] = (Mark(_ACTION, read_call, anchor="line"),)
    ends: tuple[str, ...] = (_OBSERVATION,)

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        if not callable_tools(tools, choice):
            return ""
        shape = self.render_call("NAME", '{"KEY": "VALUE"}')
        return (
            "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
            f"{listed(tools)}\n\n"
            "To call a function, write these two lines and then stop; you are then told its result:\n"
            f"{shape}\n\n{rules(choice, parallel, _SEVERAL)}"
        )

    def render_call(self, name: str, arguments: str) -> str:
        """Shows arguments that are no object as a string, so that the model reads its own text."""
        written = repaired_object(arguments) or ("{}" if not arguments.strip() else json.dumps(arguments))
        return f"{_ACTION} {name}\n{_INPUT} {written}"

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        return ToolCallParser(self.marks, () if choice == "none" else tools, id_prefix, self.ends)

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """Returns a constraint only for a single callable tool: no schema describes the line with the name."""
        allowed = callable_tools(tools, choice)
        if choice == "auto" or len(allowed) != 1:
            return None
        (tool,) = allowed
        return Constraint(tool.parameters or {"type": "object"}, f"{_ACTION} {tool.name}\n{_INPUT} ")


REACT: Final = React()
