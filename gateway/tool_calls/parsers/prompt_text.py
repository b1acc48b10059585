"""Writes the format-independent part of the system text: the list of tools, and when to call them."""

import json
from collections.abc import Sequence

from gateway.core.conversation import Json, NamedTool, ToolChoice, ToolSpec


def listed(tools: Sequence[ToolSpec]) -> str:
    """Returns one JSON object a line."""
    return "\n".join(_line(tool) for tool in tools)


def rules(choice: ToolChoice, parallel: bool, several: str = "") -> str:
    """Returns when to call, and how often. `several` is the format's instruction for more than one call."""
    return "\n".join(
        [when_to_call(choice), several if parallel else "Call at most one function, then wait for its result."]
    )


def _line(tool: ToolSpec) -> str:
    parameters: Json = dict(tool.parameters) or {"type": "object", "properties": {}}
    written: Json = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return json.dumps(written, ensure_ascii=False)


def when_to_call(choice: ToolChoice) -> str:
    """Returns whether a call must be made now."""
    if isinstance(choice, NamedTool):
        return f"You must call the function {choice.name} now, and write nothing else."
    if choice == "required":
        return "You must call a function now, and write nothing else."
    return "Call a function only when you need it; otherwise answer in plain text. Never invent a function's result."
