"""Tools -> the JSON schema of one call of one of them, for backends that can constrain their decoding."""

from collections.abc import Sequence

from gateway.types import Json, JsonObject, NamedTool, ToolChoice, ToolSpec

_ANY_OBJECT: JsonObject = {"type": "object"}


def callable_tools(tools: Sequence[ToolSpec], choice: ToolChoice) -> tuple[ToolSpec, ...]:
    """The tools that may be called: all, none, or the one that is named."""
    if choice == "none":
        return ()
    if isinstance(choice, NamedTool):
        return tuple(tool for tool in tools if tool.name == choice.name)
    return tuple(tools)


def call_schema(tools: Sequence[ToolSpec]) -> JsonObject:
    """An object with the name of one of the tools, which comes first, and arguments that fit its parameters."""
    definitions: dict[str, Json] = {}
    calls: list[Json] = [_call(tool, f"tool{position}", definitions) for position, tool in enumerate(tools)]
    schema: dict[str, Json] = {"anyOf": calls} if len(calls) != 1 else dict(_object(calls[0]))
    return {**schema, "$defs": definitions} if definitions else schema


def _call(tool: ToolSpec, key: str, definitions: dict[str, Json]) -> Json:
    parameters: Json = dict(tool.parameters or _ANY_OBJECT)
    # A schema's own references count from its root, which is now somewhere else.
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
