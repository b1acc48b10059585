"""Makes values of an SDK's published types: each with every field, and each member of every union once."""

import types
import typing
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

Sample = Any  # any JSON value

_PLAIN: Final[dict[Any, Sample]] = {
    str: "a",
    int: 3,
    float: 0.5,
    bool: True,
    bytes: "YQ==",
    object: {"of": "any kind"},
    datetime: "2026-01-01T00:00:00Z",
}
_MARKS: Final = (typing.Required, typing.NotRequired, Annotated)
_UNIONS: Final = (typing.Union, types.UnionType)
_NONE: Final = type(None)


def samples(annotation: Any, depth: int = 8) -> list[Sample]:
    """Returns values of a type. An object has each of its fields; a field with several kinds of value has each of them
    in one of the objects. `depth` bounds types that hold themselves."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in _MARKS:
        return samples(args[0], depth)
    if origin is Literal:
        return list(args)
    if origin in _UNIONS:
        return [value for member in args if member is not _NONE for value in samples(member, depth)]
    if annotation in _PLAIN:
        return [_PLAIN[annotation]]
    if annotation is Any or isinstance(annotation, typing.TypeVar):
        return [_PLAIN[object]]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [[member.value for member in annotation][-1]]
    if depth <= 0:
        return []
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return [{"key": value} for value in samples(args[1], depth - 1)[:1]]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _lists(samples(args[0], depth - 1))
    return _objects(annotation, depth) if isinstance(annotation, type) else []


def _lists(items: list[Sample]) -> list[Sample]:
    return [_kinds(items)]


def _objects(model: type, depth: int) -> list[Sample]:
    fields = {name: samples(hint, depth - 1) for name, hint in hints(model).items()}
    first = {name: values[0] for name, values in fields.items() if values}
    others = [{**first, name: value} for name, values in fields.items() for value in _kinds(values)[1:]]
    return [first, *others] if first else []


def _kinds(values: list[Sample]) -> list[Sample]:
    """Returns the first value of each kind: of each type of object, of text, of list."""
    found: dict[Sample, Sample] = {}
    for value in values:
        found.setdefault(str(value.get("type")) if isinstance(value, dict) else type(value), value)
    return [*found.values()]


def hints(model: type) -> Mapping[str, Any]:
    """Returns the type of each field of an object; none for any other class."""
    found = getattr(model, "model_fields", None)
    if found is None:
        return get_type_hints(model, include_extras=True) if hasattr(model, "__total__") else {}
    return {field.alias or name: field.annotation for name, field in found.items()}
