"""Formats calls as JSON objects: between `<tool_call>` and `</tool_call>`, in a fenced block, or on their own line."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import ToolChoice, ToolSpec
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.format import Constraint, listed, rules, write_json
from gateway.tool_calls.parsers.json_call import JsonCallReader
from gateway.tool_calls.parsers.json_scan import repaired_object
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser
from gateway.tool_calls.parsers.schema import call_schema, callable_tools


def read_call(declared: Declared) -> JsonCallReader:
    return JsonCallReader(declared)


def read_doubtful_call(declared: Declared) -> JsonCallReader:
    return JsonCallReader(declared, doubtful=True)


class Tagged(msgspec.Struct, frozen=True):
    """A format as data. The prompt uses the first of the `marks`."""

    marks: tuple[Mark, ...]
    introduction: str
    several: str
    ends: tuple[str, ...] = ()

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        if not callable_tools(tools, choice):
            return ""
        shape = self.render_call("NAME", '{"KEY": "VALUE"}')
        section = self.introduction.format(tools=listed(tools), call=shape)
        return f"{section}\n{rules(choice, parallel, self.several)}"

    def render_call(self, name: str, arguments: str) -> str:
        """Shows arguments that are no object as a string, so that the model reads its own text."""
        written = repaired_object(arguments) or ("{}" if not arguments.strip() else json.dumps(arguments))
        call = f'{{"name": {write_json(name)}, "arguments": {written}}}'
        mark = self.marks[0]
        return f"{mark.text}\n{call}\n{mark.closer}" if mark.closer else call

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        return ToolCallParser((*self.marks, *also), () if choice == "none" else tools, id_prefix, self.ends)

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        allowed = callable_tools(tools, choice)
        if choice == "auto" or not allowed:
            return None
        mark = self.marks[0]
        if mark.closer:
            return Constraint(call_schema(allowed), f"{mark.text}\n")
        return Constraint(call_schema(allowed))


HERMES_JSON: Final = Tagged(
    marks=(Mark("<tool_call>", read_call, "</tool_call>"),),
    introduction=(
        "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
        "<tools>\n{tools}\n</tools>\n\n"
        "To call a function, write its name and its arguments as one JSON object between these marks:\n{call}\n"
    ),
    several="To call several functions, write one such block for each.",
    ends=("<tool_response>",),
)

# Models without training on this block write json instead; an object without a declared name in it is then no call.
FENCED_JSON: Final = Tagged(
    marks=(
        Mark("```tool_call", read_call, "```", "line"),
        Mark("```json", read_doubtful_call, "```", "line", doubtful=True),
    ),
    introduction=(
        "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
        "```tools\n{tools}\n```\n\n"
        "To call a function, write its name and its arguments as one JSON object in a block like this:\n{call}\n"
    ),
    several="To call several functions, write one such block for each.",
    ends=("```tool_result", "```tool_response"),
)

BARE_JSON: Final = Tagged(
    marks=(
        Mark("{", read_doubtful_call, anchor="line", is_read=True, doubtful=True),
        Mark("```json", read_doubtful_call, "```", "line", doubtful=True),
    ),
    introduction=(
        "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
        "{tools}\n\n"
        "To call a function, write one JSON object on a line of its own, and nothing after it:\n{call}\n"
    ),
    several="To call several functions, write one such object a line.",
)
