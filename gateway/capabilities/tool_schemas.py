"""Puts JSON Schemas of functions into the forms that providers require, without a change of what they accept where that
is possible. A schema that already has the form is returned itself."""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.core.conversation import Json, JsonObject

# Keywords that hold one schema, a list of schemas, and schemas by name (JSON Schema 2020-12, and `definitions` of older
# drafts).
_ONE: Final = frozenset(("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"))
_LISTS: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_NAMED: Final = frozenset(("properties", "$defs", "definitions", "patternProperties"))
_COMBINATORS: Final = ("anyOf", "oneOf", "allOf")
_NESTING: Final = frozenset({*_ONE, *_LISTS, *_NAMED})
_LACKS: Final = frozenset({"object", "array"})
_REFERENCE: Final = ("#/$defs/", "#/definitions/")


def object_schema(schema: JsonObject) -> JsonObject:
    """Returns the schema as one of type `object` without `anyOf`, `oneOf` and `allOf` beside it.

    The properties of the branches become its own; of `anyOf` and `oneOf` what every branch requires stays so.
    So an object with the properties of a branch that the schema accepted is still accepted, and some that it refused.
    """
    if schema.get("type") == "object" and not any(name in schema for name in _COMBINATORS):
        return schema
    properties = dict(_properties(schema))
    required = _required(schema)
    for name in _COMBINATORS:
        branches = [object_schema(branch) for branch in _branches(schema, name)]
        for branch in branches:
            for key, value in _properties(branch).items():
                known = properties.setdefault(key, value)
                if known != value and name != "allOf":
                    properties[key] = {"anyOf": [known, value]}
        demands = [_required(branch) for branch in branches]
        if demands:
            required += (
                [key for key in demands[0] if all(key in others for others in demands)]
                if name != "allOf"
                else [key for keys in demands for key in keys]
            )
    rest = {key: value for key, value in schema.items() if key not in (*_COMBINATORS, "type", "properties", "required")}
    demanded: dict[str, Json] = {"required": [*dict.fromkeys(required)]} if required else {}
    held: dict[str, Json] = {"properties": properties} if properties or "properties" in schema else {}
    return {"type": "object", **rest, **held, **demanded}


def complete_schema(schema: JsonObject) -> JsonObject:
    """Returns the schema with `properties` in every object and `items` in every array that lacks them."""
    return schema if _is_complete(schema) else _with_members(schema)


def _is_complete(schema: JsonObject) -> bool:
    """Returns whether nothing is lacking. Nearly every schema of every request is complete, so that this has to be
    faster than making another one."""
    open_schemas = [schema]
    while open_schemas:
        found = open_schemas.pop()
        kind = found.get("type")
        if (kind in _LACKS if isinstance(kind, str) else kind is not None) and _lacking(found):
            return False
        if _NESTING.isdisjoint(found):
            continue
        for key, value in found.items():
            if key in _ONE:
                inner = value if isinstance(value, list) else [value]
            elif key in _LISTS:
                inner = value if isinstance(value, list) else []
            elif key in _NAMED:
                inner = [*value.values()] if isinstance(value, dict) else []
            else:
                continue
            open_schemas += [each for each in inner if isinstance(each, dict)]
    return True


def _lacking(schema: JsonObject) -> dict[str, Json]:
    """Returns the members that a schema itself lacks."""
    kind = schema.get("type")
    lacking: dict[str, Json] = {}
    if "properties" not in schema and _is(kind, "object"):
        lacking["properties"] = {}
    if "items" not in schema and "prefixItems" not in schema and _is(kind, "array"):
        lacking["items"] = {}
    return lacking


def _with_members(schema: JsonObject) -> JsonObject:
    changed: dict[str, Json] = {}
    for key, value in schema.items():
        if (new := _completed(key, value)) is not value:
            changed[key] = new
    changed |= _lacking(schema)
    return {**schema, **changed} if changed else schema


def _completed(key: str, value: Json) -> Json:
    if isinstance(value, dict):
        if key in _ONE:
            return _same(value, _with_members(value))
        if key in _NAMED:
            new = {name: _schema(inner) for name, inner in value.items()}
            return value if all(new[name] is value[name] for name in new) else new
    elif isinstance(value, list) and (key in _LISTS or key == "items"):
        made = [_schema(inner) for inner in value]
        return value if all(one is other for one, other in zip(made, value, strict=True)) else made
    return value


def _schema(value: Json) -> Json:
    return _same(value, _with_members(value)) if isinstance(value, dict) else value


def _same(value: dict[str, Json], new: JsonObject) -> Json:
    return value if new is value else dict(new)


def _is(kind: Json, name: str) -> bool:
    return kind == name or (isinstance(kind, list) and name in kind)


def _properties(schema: JsonObject) -> Mapping[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return [key for key in required if isinstance(key, str)] if isinstance(required, list) else []


def _branches(schema: JsonObject, name: str) -> Iterator[JsonObject]:
    """Yields the schemas of objects below a combinator. Those of other types, such as `null`, accept no arguments."""
    branches = schema.get(name)
    for branch in branches if isinstance(branches, list) else []:
        found = _resolved(branch, schema)
        if found is not None and _is(found.get("type", "object"), "object"):
            yield found


def _resolved(branch: Json, schema: JsonObject) -> JsonObject | None:
    """Returns a branch, or what its reference into the definitions of the schema names."""
    if not isinstance(branch, dict):
        return None
    reference = branch.get("$ref")
    if not isinstance(reference, str):
        return branch
    for prefix in _REFERENCE:
        definitions = schema.get(prefix.strip("#/"))
        if reference.startswith(prefix) and isinstance(definitions, dict):
            found = definitions.get(reference.removeprefix(prefix))
            return found if isinstance(found, dict) and "$ref" not in found else None
    return None
