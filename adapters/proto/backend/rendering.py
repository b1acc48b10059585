"""Renders one compiled place of a request template: a name, a list of values, or one item for each of a list."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from adapters.proto.backend.field_values import Convert, Value
from gateway.core.notices import Notice

# The values of one scope by name. Any: a text, a number, a schema, or a list of such mappings.
Values: TypeAlias = Mapping[str, Any]
Render: TypeAlias = Callable[[Values, list[Notice]], Value]


def named(name: str, convert: Convert) -> Render:
    """Renders the value of a name, or nothing."""

    def render(values: Values, notices: list[Notice]) -> Value:
        value = values.get(name)
        return None if value is None else convert(value, notices)

    return render


def each_value(name: str, convert: Convert) -> Render:
    """Renders every value of a list."""
    return lambda values, notices: [convert(value, notices) for value in values.get(name) or ()] or None


def listed(renders: Sequence[Render]) -> Render:
    """Renders the items that have a value."""
    return lambda values, notices: (
        [value for render in renders if (value := render(values, notices)) is not None] or None
    )


def each_item(name: str, by: str | None, renders: Mapping[str, Render], joined: Sequence[str]) -> Render:
    """Renders each item by its variant. `joined`: the repeated fields in which neighbours of a variant become one."""

    def render(values: Values, notices: list[Notice]) -> Value:
        made: list[Value] = []
        before: object = None
        for item in values.get(name) or ():
            variant = "" if by is None else item[by]
            chosen = renders.get(variant)
            value = None if chosen is None else chosen({**values, **item}, notices)
            if value is None:
                continue
            if joined and variant == before and _differ_only(made[-1], value, joined):
                made[-1] = {key: [*made[-1][key], *value[key]] if key in joined else value[key] for key in value}
            else:
                made.append(value)
            before = variant
        return made or None

    return render


def _differ_only(one: Mapping[str, Value], other: Mapping[str, Value], fields: Sequence[str]) -> bool:
    return one.keys() == other.keys() and all(key in fields or one[key] == other[key] for key in one)
