"""Calls as two labelled lines: `Action: NAME` and `Action Input: {...}`; results follow as `Observation: ...`."""

import json
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.tools.prompted.format import Constraint
from gateway.tools.prompted.json_scan import mended_object
from gateway.tools.prompted.labelled_call import LabelledReader
from gateway.tools.prompted.parser import Declared, Mark, ToolCallParser
from gateway.tools.prompted.schema import callable_tools
from gateway.tools.prompted.section import listed, rules
from gateway.types import ToolChoice, ToolSpec

_ACTION: Final = "Action:"
_INPUT: Final = "Action Input:"
_OBSERVATION: Final = "Observation:"

# A result must not go on as if the model had spoken: such lines, and the whole result with them, are quoted.
_LABEL: Final = re.compile(r"\s*+(?:action|action input|observation|thought|final answer|>)", re.IGNORECASE)


def read_call(declared: Declared) -> LabelledReader:
    return LabelledReader(declared, "\n", _INPUT)


class React(msgspec.Struct, frozen=True):
    """For models that know this loop from their training. One call an answer, whatever the client allows."""

    stops: tuple[str, ...] = (f"\n{_OBSERVATION}",)

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        if not callable_tools(tools, choice):
            return ""
        shape = self.render_call("NAME", '{"KEY": "VALUE"}')
        return (
            "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
            f"{listed(tools)}\n\n"
            "To call a function, write these two lines and then stop; its result will follow as an observation:\n"
            f"{shape}\n\n{rules(choice, parallel=False)}"
        )

    def render_call(self, name: str, arguments: str) -> str:
        """Arguments that are no object are shown as a string: the model sees what it wrote."""
        written = mended_object(arguments) or ("{}" if not arguments.strip() else json.dumps(arguments))
        return f"{_ACTION} {name}\n{_INPUT} {written}"

    def render_result(self, call_id: str, name: str, text: str) -> str | None:
        """The text, every line of it quoted when one of its later lines reads as a label."""
        lines = text.splitlines(keepends=True)
        if any(map(_LABEL.match, lines)):
            text = "".join(f"> {line}" for line in lines)
        return f"{_OBSERVATION} {text}"

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        return ToolCallParser((Mark(_ACTION, read_call, anchor="line"),), () if choice == "none" else tools, id_prefix)

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """Only where one tool is left: no schema describes the line with the name."""
        allowed = callable_tools(tools, choice)
        if choice == "auto" or len(allowed) != 1:
            return None
        (tool,) = allowed
        return Constraint(tool.parameters or {"type": "object"}, f"{_ACTION} {tool.name}\n{_INPUT} ")


REACT: Final = React()
