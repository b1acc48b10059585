"""Tools -> the words of the system text that do not depend on the format: what there is, and when to call."""

import json
from collections.abc import Sequence

from gateway.types import Json, NamedTool, ToolChoice, ToolSpec


def listed(tools: Sequence[ToolSpec]) -> str:
    """One JSON object a line."""
    return "\n".join(_line(tool) for tool in tools)


def rules(choice: ToolChoice, parallel: bool, several: str = "") -> str:
    """When to call, and how often. `several` says how the format writes more than one call."""
    return "\n".join([_when(choice), several if parallel else "Call at most one function, then wait for its result."])


def _line(tool: ToolSpec) -> str:
    parameters: Json = dict(tool.parameters) or {"type": "object", "properties": {}}
    written: Json = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return json.dumps(written, ensure_ascii=False)


def _when(choice: ToolChoice) -> str:
    if isinstance(choice, NamedTool):
        return f"You must call the function {choice.name} now, and write nothing else."
    if choice == "required":
        return "You must call a function now, and write nothing else."
    return "Call a function only when you need it; otherwise answer in plain text. Never invent a function's result."
