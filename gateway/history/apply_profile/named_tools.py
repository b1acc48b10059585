"""Lists and renames the function names in the parameters of a request."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gateway.core.conversation import Json, JsonObject

Rename: TypeAlias = Callable[[str], str]

_KINDS: Final = ("function", "custom")


def names_in(params: JsonObject) -> list[str]:
    """Returns every name in `tools`, `functions`, `tool_choice` (`allowed_tools` too) and `function_call`."""
    names: list[str] = []

    def noted(name: str) -> str:
        names.append(name)
        return name

    with_names(params, noted)
    return names


def with_names(params: JsonObject, rename: Rename) -> JsonObject:
    """Returns the request with every such name replaced; the fields keep everything else."""
    named = {field: write(params[field], rename) for field, write in _FIELDS.items() if params.get(field)}
    return {**params, **named} if named else params


def _named_entry(entry: Json, rename: Rename) -> Json:
    """Returns an entry of `tools`, or a choice of the same shape, with its name replaced; itself if unchanged."""
    if isinstance(entry, dict):
        for kind in _KINDS:
            if kind in entry and (renamed := _function(entry[kind], rename)) is not entry[kind]:
                entry = {**entry, kind: renamed}
    return entry


def _function(function: Json, rename: Rename) -> Json:
    if isinstance(function, dict) and isinstance(name := function.get("name"), str) and (new := rename(name)) != name:
        return {**function, "name": new}
    return function


def _functions(functions: Json, rename: Rename) -> Json:
    return [_function(entry, rename) for entry in functions] if isinstance(functions, list) else functions


def _tools(tools: Json, rename: Rename) -> Json:
    return [_named_entry(entry, rename) for entry in tools] if isinstance(tools, list) else tools


def _choice(choice: Json, rename: Rename) -> Json:
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and isinstance(allowed, dict):
        return {**choice, "allowed_tools": {**allowed, "tools": _tools(allowed.get("tools"), rename)}}
    return _named_entry(choice, rename)


_FIELDS: Final[Mapping[str, Callable[[Json, Rename], Json]]] = {
    "tools": _tools,
    "functions": _functions,
    "tool_choice": _choice,
    "function_call": _function,
}
