"""Reads the functions that a request offers, the other tools, and which functions the model may call."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapters.gemini_interactions.table import MODES
from gateway.core.conversation import EMPTY, Json, JsonObject, OtherTool, ToolChoice, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.dialects.faults import Faults
from gateway.dialects.offered_functions import allowed_functions, check_tools

_FUNCTION: Final = "function"
_READ: Final = frozenset({"type", "name", "description", "parameters"})


class Tools(NamedTuple):
    """What a request says of tools. `own`: the choice is one that only the API itself knows."""

    functions: tuple[ToolSpec, ...]
    others: tuple[OtherTool, ...]
    choice: ToolChoice = "auto"
    notices: tuple[Notice, ...] = ()
    own: bool = False


def read_tools(tools: Sequence[JsonObject], choice: str | JsonObject | None, faults: Faults, place: str) -> Tools:
    """Returns the tools; `place` is the path of the choice.

    Faults: TOOLS_COUNT, TOOLS_NAME. Raises InvalidRequest for a function without a name or with parameters that are no
    object, and for an allowed function that is not declared.
    """
    functions: list[ToolSpec] = []
    places: list[str] = []
    others: list[OtherTool] = []
    for index, tool in enumerate(tools):
        kind = tool.get("type")
        if not isinstance(kind, str):
            raise InvalidRequest(f"tools[{index}].type must be text.", param=f"tools[{index}].type")
        if kind == _FUNCTION:
            functions.append(_spec(tool, f"tools[{index}]"))
            places.append(f"tools[{index}].name")
        else:
            others.append(OtherTool(kind))
    check_tools(functions, places, faults)
    return _chosen(Tools(tuple(functions), tuple(others)), choice, place)


def _spec(tool: JsonObject, place: str) -> ToolSpec:
    name, described, parameters = tool.get("name"), tool.get("description"), tool.get("parameters")
    if not isinstance(name, str):
        raise InvalidRequest(f"{place}.name must be text.", code="invalid_type", param=f"{place}.name")
    if not isinstance(described, str | None):
        raise InvalidRequest(f"{place}.description must be text.", code="invalid_type", param=f"{place}.description")
    if not isinstance(parameters, dict | None):
        raise InvalidRequest(f"{place}.parameters must be an object.", code="invalid_type", param=f"{place}.parameters")
    extra: dict[str, Json] = {key: value for key, value in tool.items() if key not in _READ and value is not None}
    return ToolSpec(name, described or "", parameters or EMPTY, extra={"function": extra} if extra else EMPTY)


def _chosen(tools: Tools, choice: str | JsonObject | None, place: str) -> Tools:
    """Returns the tools with the choice among them: a word, or the functions that are allowed."""
    if choice is None:
        return tools
    if isinstance(choice, str):
        return _in_mode(tools, choice)
    allowed = choice.get("allowed_tools")
    if not isinstance(allowed, dict):
        return tools._replace(own=bool(choice))
    mode, names = allowed.get("mode"), allowed.get("tools")
    moded = _in_mode(tools, mode if isinstance(mode, str) else "auto")
    return moded if names is None else _allowed(moded, names, f"{place}.allowed_tools.tools")


def _in_mode(tools: Tools, word: str) -> Tools:
    known = MODES.values.get(word.lower())
    return tools._replace(own=True) if known is None else tools._replace(choice=known)


def _allowed(tools: Tools, names: Json, place: str) -> Tools:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{place} must be an array of texts.", code="invalid_type", param=place)
    allowed = allowed_functions(tools.functions, [str(name) for name in names], tools.choice, place)
    return tools._replace(functions=allowed.functions, choice=allowed.choice, notices=allowed.notices)
