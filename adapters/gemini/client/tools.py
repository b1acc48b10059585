"""Reads the functions that a request offers, the other tools, and which functions the model may call."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from adapters.gemini.client.schema import json_schema
from adapters.gemini.table import MODES, FunctionCallingConfig, FunctionDeclaration, GeminiTool
from gateway.core.conversation import EMPTY, Json, JsonObject, OtherTool, ToolChoice, ToolSpec
from gateway.core.notices import Notice
from gateway.dialects.faults import Faults
from gateway.dialects.offered_functions import allowed_functions

_DECLARATIONS: Final = "functionDeclarations"
_READ: Final = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
# Source: google-genai, `FunctionDeclaration.name`.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")


class Tools(NamedTuple):
    """What a request says of tools."""

    functions: tuple[ToolSpec, ...]
    others: tuple[OtherTool, ...]
    choice: ToolChoice
    notices: tuple[Notice, ...] = ()


def read_tools(
    tools: Sequence[GeminiTool], sources: Json, config: FunctionCallingConfig, faults: Faults, place: str
) -> Tools:
    """Returns the tools; `sources` are their entries as the client wrote them, `place` the path of the choice.

    Fault: TOOLS_NAME. Raises InvalidRequest for an allowed function that is not declared.
    """
    functions: list[ToolSpec] = []
    others: list[OtherTool] = []
    for index, (tool, source) in enumerate(zip(tools, sources if isinstance(sources, list) else (), strict=True)):
        fields = source if isinstance(source, dict) else {}
        others += [OtherTool(name) for name, value in fields.items() if name != _DECLARATIONS and value is not None]
        declared = fields.get(_DECLARATIONS)
        written = declared if isinstance(declared, list) else []
        for position, (function, entry) in enumerate(zip(tool.function_declarations or (), written, strict=True)):
            if not _NAME.fullmatch(function.name):
                faults.add("TOOLS_NAME", -1, f"tools[{index}].{_DECLARATIONS}[{position}].name")
            functions.append(_spec(function, entry))
    choice: ToolChoice = MODES.values.get(config.mode or "", "auto")
    names = config.allowed_function_names or ()
    allowed = allowed_functions(functions, names, choice, f"{place}.allowedFunctionNames")
    return Tools(allowed.functions, tuple(others), allowed.choice, allowed.notices)


def _spec(function: FunctionDeclaration, entry: Json) -> ToolSpec:
    if function.parameters_json_schema is not None:
        parameters: JsonObject = function.parameters_json_schema
    else:
        parameters = EMPTY if function.parameters is None else json_schema(function.parameters)
    fields = entry.items() if isinstance(entry, dict) else ()
    extra: dict[str, Json] = {name: value for name, value in fields if name not in _READ and value is not None}
    return ToolSpec(
        function.name,
        function.description or "",
        parameters,
        strict=None,
        extra={"function": extra} if extra else EMPTY,
    )
