"""Reads the functions that a chat request offers as ToolSpecs."""

from collections.abc import Mapping
from typing import Final

from adapters.ollama.table import ChatFields, OllamaFunction
from gateway.core.conversation import EMPTY, Json, JsonObject, OtherTool, ToolSpec
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field
from gateway.dialects.offered_functions import check_tools

_TOOL_FIELDS: Final = frozenset({"type", "function"})
_FUNCTION_FIELDS: Final = frozenset({"name", "description", "parameters"})


def read_tools(request: ChatFields, sources: Json, faults: Faults) -> tuple[ToolSpec, ...]:
    """Returns every function of `tools`, of which `sources` is the array as the client wrote it.

    Faults: TOOLS_COUNT, TOOLS_NAME. Raises InvalidRequest for an entry of type function without a function.
    """
    if not request.tools:
        return ()
    assert isinstance(sources, list)  # msgspec has read it as one
    specs, places = [], []
    for position, (tool, source) in enumerate(zip(request.tools, sources, strict=True)):
        if tool.type != "function":
            continue
        if tool.function is None:
            raise missing_field(f"tools[{position}].function")
        specs.append(_spec(tool.function, source))
        places.append(f"tools[{position}].function.name")
    check_tools(specs, places, faults)
    return tuple(specs)


def read_other_tools(request: ChatFields) -> tuple[OtherTool, ...]:
    """Returns the tools of other types than function, which no backend has."""
    return tuple([OtherTool(tool.type) for tool in request.tools or () if tool.type != "function"])


def _spec(function: OllamaFunction, source: Json) -> ToolSpec:
    assert isinstance(source, dict)  # msgspec has read it as an object
    return ToolSpec(function.name, function.description or "", function.parameters or EMPTY, extra=_unknown(source))


def _unknown(entry: Mapping[str, Json]) -> JsonObject:
    """Returns the fields of an entry of `tools` that a ToolSpec does not hold itself."""
    function = entry.get("function")
    inner = _other_fields(function, _FUNCTION_FIELDS) if isinstance(function, dict) else {}
    extra = _other_fields(entry, _TOOL_FIELDS)
    return {**extra, "function": inner} if inner else extra or EMPTY


def _other_fields(fields: Mapping[str, Json], read: frozenset[str]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if name not in read and value is not None}
