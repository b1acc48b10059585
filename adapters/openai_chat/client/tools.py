"""Reads the functions that a request offers and its tool choice as ToolSpecs and a ToolChoice."""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.openai_chat.table import CHOICES, ChatFields, ForcedTool, FunctionName, FunctionSpec, Tool
from gateway.core.conversation import EMPTY, Json, JsonObject, NamedTool, OtherTool, ToolChoice, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.dialects.custom_input import Grammar, custom_spec
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field
from gateway.dialects.offered_functions import check_tools, not_allowed

_TOOL_FIELDS: Final = frozenset({"type", "function"})
_CUSTOM_FIELDS: Final = frozenset({"type", "custom"})
_NAME: Final = frozenset({"name"})
_FUNCTION_FIELDS: Final = frozenset({"name", "description", "parameters", "strict"})


def read_tools(
    request: ChatFields, document: JsonObject, faults: Faults, known: tuple[ToolSpec, ...] = ()
) -> tuple[tuple[ToolSpec, ...], tuple[Notice, ...]]:
    """Returns every function and custom tool of `tools`, or of the deprecated `functions`. Faults: TOOLS_COUNT,
    TOOLS_NAME.

    A choice of type `allowed_tools` leaves out the others, which has the same effect for a backend that cannot read it;
    the notice names them. `known` are those of the same tools in an earlier request. Raises InvalidRequest for an entry
    of type function without a function.
    """
    if request.tools is None and not request.functions:
        return (), ()
    specs = known or _declared(request, document, faults)
    allowed = _allowed(document.get("tool_choice"))
    if allowed is None:
        return tuple(specs), ()
    offered = tuple([spec for spec in specs if spec.name in allowed])
    return offered, not_allowed([spec.name for spec in specs], offered, "tool_choice.allowed_tools.tools")


def _declared(request: ChatFields, document: JsonObject, faults: Faults) -> Sequence[ToolSpec]:
    if request.tools is None:
        functions = document["functions"]
        assert request.functions and isinstance(functions, list)  # msgspec has read it as one
        specs = [
            _spec(function, {"function": source}) for function, source in zip(request.functions, functions, strict=True)
        ]
        names = [f"functions[{position}].name" for position in range(len(specs))]
    else:
        sources = document["tools"]
        assert isinstance(sources, list)  # msgspec has read it as one
        specs, names = [], []
        for position, (tool, source) in enumerate(zip(request.tools, sources, strict=True)):
            if (custom := _custom(source)) is not None:
                specs.append(_custom_spec(custom, source))
                names.append(f"tools[{position}].custom.name")
            if tool.type != "function":
                continue
            if tool.function is None:
                raise missing_field(f"tools[{position}].function")
            specs.append(_spec(tool.function, source))
            names.append(f"tools[{position}].function.name")
    check_tools(specs, names, faults)
    return specs


def _custom(source: Json) -> JsonObject | None:
    """Returns the fields of a custom tool that has a name; None for any other tool."""
    if not isinstance(source, dict) or source.get("type") != "custom":
        return None
    custom = source.get("custom")
    return custom if isinstance(custom, dict) and isinstance(custom.get("name"), str) else None


def _custom_spec(custom: JsonObject, source: Json) -> ToolSpec:
    """Returns a custom tool as a function, with the client's own fields in `extra`."""
    said = custom.get("description")
    extra: dict[str, Json] = {"type": "custom", "custom": _rest(custom, _NAME)}
    if isinstance(source, dict):
        extra |= _rest(source, _CUSTOM_FIELDS)
    grammar = _grammar(custom.get("format"))
    return custom_spec(str(custom["name"]), said if isinstance(said, str) else None, grammar, extra)


def _grammar(form: Json) -> Grammar | None:
    match form:
        case {"type": "grammar", "grammar": {"syntax": str(syntax), "definition": str(definition)}}:
            return Grammar(syntax, definition)
        case _:
            return None


def read_other_tools(tools: Sequence[Tool], sources: Json) -> tuple[OtherTool, ...]:
    """Returns the tools that are neither functions nor custom tools: only a backend that receives the request unchanged
    has them."""
    assert isinstance(sources, list)  # msgspec has read it as one
    read = zip(tools, sources, strict=True)
    return tuple([OtherTool(tool.type) for tool, source in read if tool.type != "function" and _custom(source) is None])


def _allowed(choice: Json) -> set[str] | None:
    """Returns the functions that `tool_choice` of type `allowed_tools` permits; None when it permits all of them."""
    match choice:
        case {"type": "allowed_tools", "allowed_tools": {"tools": [*tools]}}:
            names: set[str] = set()
            for tool in tools:
                match tool:
                    case {"type": "function", "function": {"name": str(name)}}:
                        names.add(name)
                    case {"type": "custom", "custom": {"name": str(name)}}:
                        names.add(name)
                    case _:
                        pass
            return names
        case _:
            return None


def _spec(function: FunctionSpec, source: Json) -> ToolSpec:
    return ToolSpec(
        function.name,
        function.description or "",
        function.parameters or EMPTY,
        strict=function.strict,
        extra=_unknown(source) if isinstance(source, dict) else EMPTY,
    )


def _unknown(entry: Mapping[str, Json]) -> JsonObject:
    """Returns the fields of an entry of `tools` that a ToolSpec does not hold itself."""
    function = entry.get("function")
    inner = {} if not isinstance(function, dict) else _rest(function, _FUNCTION_FIELDS)
    extra = _rest(entry, _TOOL_FIELDS)
    return {**extra, "function": inner} if inner else extra or EMPTY


def _rest(fields: Mapping[str, Json], read: frozenset[str]) -> dict[str, Json]:
    return {} if read.issuperset(fields) else {name: fields[name] for name in fields if name not in read}


def read_tool_choice(request: ChatFields, document: JsonObject) -> ToolChoice:
    """Reads `tool_choice`, or the deprecated `function_call`. Raises InvalidRequest for an unknown word."""
    choice, older = request.tool_choice, request.function_call
    if choice is None:
        return "auto" if older is None else _choice(older, "function_call")
    if isinstance(choice, ForcedTool):
        return _forced(choice, document["tool_choice"])
    return _choice(choice, "tool_choice")


def _choice(choice: str | FunctionName, param: str) -> ToolChoice:
    if isinstance(choice, FunctionName):
        return NamedTool(choice.name)
    known = CHOICES.values.get(choice)
    if known is None:
        words = ", ".join(CHOICES.known)
        raise InvalidRequest(f"{param} must be one of {words} or name a function; it is {choice[:40]!r}.", param=param)
    return known


def _forced(choice: ForcedTool, source: Json) -> ToolChoice:
    if choice.function is not None:
        return NamedTool(choice.function.name)
    match source:
        case {"type": "custom", "custom": {"name": str(name)}}:
            return NamedTool(name)
        # Ignoring a list that is invalid would offer more tools than the client allowed.
        case {"type": "allowed_tools", "allowed_tools": {"tools": tools}} if not isinstance(tools, list):
            param = "tool_choice.allowed_tools.tools"
            raise InvalidRequest(f"{param} must be an array.", code="invalid_type", param=param)
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required" as mode}}:
            return "required" if mode == "required" else "auto"
        case _:
            raise InvalidRequest("tool_choice has no function name.", param="tool_choice.function")
