"""Converts a value written as plain text to JSON text by the types of its schema."""

import json
from collections.abc import Iterator
from typing import Final

from gateway.core.conversation import Json, JsonObject
from gateway.tool_calls.parsers.json_scan import repaired_value

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
