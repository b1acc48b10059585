"""Holds the tools that a response may call, with the types of their parameters, and converts a value written as plain
text to JSON text by these types."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.core.conversation import Json, JsonObject, ToolSpec
from gateway.tool_calls.parsers.json_scan import repaired_value


class Declared(dict[str, ToolSpec]):
    """The tools that may be called, by name."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__({tool.name: tool for tool in tools})
        self._types: dict[tuple[str, str], frozenset[str]] = {}

    def types_of(self, name: str, key: str) -> frozenset[str]:
        """Returns the JSON types of a tool's parameter, read from its schema once for all calls of a response."""
        parameters = self[name].parameters
        if not is_described(parameters, key):
            return STRING
        if (name, key) not in self._types:
            self._types[name, key] = types_of(parameters, key)
        return self._types[name, key]


_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}
STRING: Final = frozenset({"string"})
_write: Final = json.JSONEncoder(ensure_ascii=False).encode


def is_described(parameters: JsonObject, key: str) -> bool:
    """Returns whether the schema describes the parameter."""
    properties = parameters.get("properties")
    return isinstance(properties, dict) and key in properties


def types_of(parameters: JsonObject, key: str) -> frozenset[str]:
    """Returns the JSON types that the schema allows for the parameter; a string when it names none."""
    properties = parameters.get("properties")
    schema = properties.get(key) if isinstance(properties, dict) else None
    return frozenset(_types(schema)) or STRING


def typed(text: str, types: frozenset[str]) -> str:
    """Returns the text as JSON when that is of an allowed type, or when no string is allowed; else a JSON string."""
    bare = text.strip()
    value = repaired_value(_PYTHON.get(bare, bare))
    kinds = types | {"integer"} if "number" in types else types
    if value is not None and (_kind(value) in kinds or ("string" not in types and not value.startswith('"'))):
        return value
    return string(text)


def string(text: str) -> str:
    """Returns the text as a JSON string."""
    return _write(text)


def _types(schema: Json) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    named = schema.get("type")
    yield from (word for word in (named if isinstance(named, list) else [named]) if isinstance(word, str))
    for key in ("anyOf", "oneOf", "allOf"):
        inner = schema.get(key)
        for one in inner if isinstance(inner, list) else ():
            yield from _types(one)
    values = schema.get("enum")
    for value in values if isinstance(values, list) and named is None else ():
        yield _kind(json.dumps(value))


def _kind(value: str) -> str:
    """Returns the JSON type of a JSON text."""
    match value[0]:
        case "{":
            return "object"
        case "[":
            return "array"
        case '"':
            return "string"
        case "t" | "f":
            return "boolean"
        case "n":
            return "null"
        case _:
            return "number" if set(value) & set(".eE") else "integer"
