"""Resolves a JSON Schema to one plain schema object: follows references and selects alternatives."""

from collections.abc import Iterator
from typing import Final

from gateway.core.conversation import Json, JsonObject

_FOLLOWED: Final = 16
# References may lead back, and each `allOf` may fan out.
_MOST_STEPS: Final = 64


def plain_schema(schema: Json, root: JsonObject) -> dict[str, Json]:
    """Follows `$ref` inside the document, merges `allOf`, takes the first alternative that is not null. A bounded
    number of them: what is behind stays as it is."""
    return _plain(schema, root, iter(range(_MOST_STEPS)))


def _plain(schema: Json, root: JsonObject, steps: Iterator[int]) -> dict[str, Json]:
    plain = dict(schema) if isinstance(schema, dict) else {}
    for _ in zip(range(_FOLLOWED), steps, strict=False):
        if isinstance(target := plain.pop("$ref", None), str):
            plain = {**_pointed(target, root), **plain}
        elif isinstance(parts := plain.pop("allOf", None), list):
            plain = _merged(plain, parts, root, steps)
        elif choices := _alternatives(plain):
            plain = {**choices, **plain}
        else:
            break
    if isinstance(kinds := plain.get("type"), list):
        plain["type"] = next((kind for kind in kinds if kind != "null"), "null")
    return plain


def properties_of(schema: JsonObject) -> dict[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _alternatives(plain: dict[str, Json]) -> dict[str, Json] | None:
    for key in ("anyOf", "oneOf"):
        choices = plain.pop(key, None)
        if isinstance(choices, list):
            real = [choice for choice in choices if isinstance(choice, dict) and choice.get("type") != "null"]
            return real[0] if real else {"type": "null"}
    return None


def _merged(plain: JsonObject, parts: list[Json], root: JsonObject, steps: Iterator[int]) -> dict[str, Json]:
    merged = dict(plain)
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for part in (*(_plain(part, root, steps) for part in parts), plain):
        properties |= properties_of(part)
        required += required_of(part)
        for key, value in part.items():
            merged.setdefault(key, value)
    return {**merged, "properties": properties, "required": required} if properties else merged


def _pointed(pointer: str, root: JsonObject) -> dict[str, Json]:
    found: Json = dict(root)
    for part in pointer.removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) and name else found
    return found if isinstance(found, dict) else {}
