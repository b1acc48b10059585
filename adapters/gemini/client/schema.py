"""Translates the schemas of the API, a subset of OpenAPI 3.0 with types in upper case, to JSON Schema.

Source: Gemini API, reference, `Schema`.
"""

import re
from collections.abc import Callable
from typing import Final

from adapters.gemini.client.spelling import camel_case
from adapters.gemini.table import UNSPECIFIED
from gateway.core.conversation import Json, JsonObject

# In ProtoJSON a number of 64 bits is text, of at most 19 digits.
_INT64: Final = re.compile("[0-9]{1,19}")
_COUNTS: Final = frozenset({"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"})


def json_schema(schema: JsonObject) -> dict[str, Json]:
    """Returns the same schema as JSON Schema. The order of properties, which JSON Schema cannot say, is that of
    `properties`."""
    made: dict[str, Json] = {}
    for written, value in schema.items():
        name = camel_case(written)
        if name in _TRANSLATED:
            made |= _TRANSLATED[name](value)
        elif name in _COUNTS and isinstance(value, str) and _INT64.fullmatch(value):
            made[name] = int(value)
        else:
            made[name] = value
    return _nullable(made) if schema.get("nullable") is True else made


def _inner(schema: Json) -> Json:
    return json_schema(schema) if isinstance(schema, dict) else schema


def _type(value: Json) -> dict[str, Json]:
    if not isinstance(value, str):
        return {"type": value}
    return {} if value.endswith(UNSPECIFIED) else {"type": value.lower()}


def _properties(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        return {"properties": value}
    return {"properties": {name: _inner(schema) for name, schema in value.items()}}


_TRANSLATED: Final[dict[str, Callable[[Json], dict[str, Json]]]] = {
    "type": _type,
    "properties": _properties,
    "items": lambda value: {"items": _inner(value)},
    "additionalProperties": lambda value: {"additionalProperties": _inner(value)},
    "anyOf": lambda value: {"anyOf": [_inner(item) for item in value] if isinstance(value, list) else value},
    "example": lambda value: {"examples": [value]},
    "nullable": lambda value: {},
    "propertyOrdering": lambda value: {},
}


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """Adds null to the values that a schema allows."""
    kind, listed, choices = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
    elif isinstance(choices, list):
        schema["anyOf"] = [*choices, {"type": "null"}]
    if isinstance(listed, list):
        schema["enum"] = [*listed, None]
    return schema
