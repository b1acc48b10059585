"""Declares the tools that the scenarios call, as an OpenAI client would declare them."""

from typing import Final

from gateway.core.conversation import Json, JsonObject


def _tool(name: str, description: str, properties: dict[str, Json], required: list[Json]) -> JsonObject:
    parameters: Json = {"type": "object", "properties": properties, "required": required}
    function: Json = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_COUNTED: Final[Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}

TOOLS: Final[tuple[JsonObject, ...]] = (
    _tool("Execute", "Run a shell command.", {"command": {"type": "string"}}, ["command"]),
    _tool(
        "get_weather",
        "The weather of a city.",
        {"city": {"type": "string"}, "days": {"type": "integer"}},
        ["city"],
    ),
    _tool(
        "measure",
        "Take values of every type.",
        {
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "big": {"type": "integer"},
            "nested": {"type": "array", "items": _COUNTED},
            "nul": {"type": ["integer", "null"]},
            "s": {"type": "string"},
        },
        ["count"],
    ),
)
