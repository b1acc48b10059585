"""Builds the JSON schema of one call of the tools, for backends that can constrain their decoding."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject, NamedTool, ToolChoice, ToolSpec

# The keywords whose schemas describe another value, or are one of several alternatives.
_SCHEMAS_BY_NAME: Final = frozenset({"properties", "$defs", "definitions"})
_SCHEMA_LISTS: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
_SCHEMAS: Final = frozenset({"items"})
# With one of these an object already declares its other keys.
_OPENS: Final = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
# Several schemas about one value.
_TOGETHER: Final = frozenset({"allOf", "if", "not", "dependentSchemas", "$dynamicRef", "$recursiveRef"})
_BESIDE: Final = frozenset({"anyOf", "oneOf", "$ref"})

_ANY_OBJECT: JsonObject = {"type": "object"}


def callable_tools(tools: Sequence[ToolSpec], choice: ToolChoice) -> tuple[ToolSpec, ...]:
    """Returns the tools that may be called: all, none, or the named one."""
    if choice == "none":
        return ()
    if isinstance(choice, NamedTool):
        return tuple(tool for tool in tools if tool.name == choice.name)
    return tuple(tools)


def call_schema(tools: Sequence[ToolSpec]) -> JsonObject:
    """Returns the schema of an object with a tool's name, first, and arguments that fit its parameters."""
    definitions: dict[str, Json] = {}
    calls: list[Json] = [_call(tool, f"tool{position}", definitions) for position, tool in enumerate(tools)]
    schema: dict[str, Json] = {"anyOf": calls} if len(calls) != 1 else dict(_object(calls[0]))
    return {**schema, "$defs": definitions} if definitions else schema


def _call(tool: ToolSpec, key: str, definitions: dict[str, Json]) -> Json:
    parameters: Json = dict(tool.parameters or _ANY_OBJECT)
    # A schema's own references count from its root, which has moved.
    moved = _moved(parameters, f"#/$defs/{key}")
    if moved != parameters:
        definitions[key] = moved
        parameters = {"$ref": f"#/$defs/{key}"}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def closed(tool: ToolSpec) -> ToolSpec:
    """Returns the tool with `additionalProperties: false` in every object that lists its properties.

    Objects that declare their other keys stay as they are. A model that may add undeclared keys does so, and they are
    worthless. Schemas that `allOf` and similar keywords combine stay as they are: each part would refuse the others'
    keys.
    """
    parameters = dict(tool.parameters)
    return tool if _puts_together(parameters) else msgspec.structs.replace(tool, parameters=_closed(parameters))


def _closed(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    shut: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
            shut[key] = {name: _closed(below) for name, below in value.items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            shut[key] = [_closed(below) for below in value]
        else:
            shut[key] = _closed(value) if key in _SCHEMAS else value
    if "properties" in schema and _OPENS.isdisjoint(schema):
        shut["additionalProperties"] = False
    return shut


def _puts_together(schema: Json) -> bool:
    """Returns whether one value may have to fit several of the objects described here."""
    if isinstance(schema, list):
        return any(map(_puts_together, schema))
    return isinstance(schema, dict) and (
        not _TOGETHER.isdisjoint(schema)
        or ("properties" in schema and not _BESIDE.isdisjoint(schema))
        or any(map(_puts_together, schema.values()))
    )


def _moved(schema: Json, root: str) -> Json:
    if isinstance(schema, list):
        return [_moved(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: root + value[1:]
        if key == "$ref" and isinstance(value, str) and value.startswith("#")
        else _moved(value, root)
        for key, value in schema.items()
    }


def _object(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value
