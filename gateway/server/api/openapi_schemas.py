"""Generates the JSON Schemas of the published document from the project's own types."""

import functools
import inspect
import operator
from collections.abc import Iterable
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from gateway.core.conversation import Json
from gateway.dialects.openapi import REFERENCE, Schema


class _Free(msgspec.Struct):
    value: Json


_JSON: Final = msgspec.structs.fields(_Free)[0].type


def schemas(types: Iterable[type[msgspec.Struct]]) -> dict[str, Schema]:
    """Returns the schemas of these types and of all types they contain, by name, for `components.schemas`."""
    _, components = msgspec.json.schema_components([_readable(kind) for kind in types], ref_template=REFERENCE)
    return {
        name: {**schema, "description": inspect.cleandoc(schema["description"])} for name, schema in components.items()
    }


@functools.cache
def _readable(kind: Any) -> Any:  # a type under inspection is untyped
    """Returns the same type with Any for every recursive Json, which msgspec cannot describe."""
    if kind == _JSON:
        return Any
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal:
        return kind
    if origin is UnionType:
        return functools.reduce(operator.or_, map(_readable, inner))
    return origin[tuple(map(_readable, inner))]


def _struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    known = {field.name: field for field in msgspec.structs.fields(kind)}
    if all(_readable(field.type) == field.type for field in known.values()):
        return kind
    fields: list[Any] = [
        (name, _readable(field.type)) if field.required else (name, _readable(field.type), field.default)
        for name, field in known.items()
    ]
    return msgspec.defstruct(kind.__name__, fields, kw_only=True, namespace={"__doc__": kind.__doc__})
