"""Renders one compiled place of a request template: a name, a list of values, or the items made of a list."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from adapters.proto.backend.field_values import Convert, Value
from gateway.core.notices import Notice

# The values of one scope by name. Any: a text, a number, a schema, or a list of such mappings.
Values: TypeAlias = Mapping[str, Any]
Render: TypeAlias = Callable[[Values, list[Notice]], Value]
# A notice of an item that becomes nothing; None: nothing is lost.
Lost: TypeAlias = Callable[[Values], Notice | None]


# The names of fields that lead to a repeated one.
FieldPath: TypeAlias = tuple[str, ...]


class Condition(msgspec.Struct, frozen=True):
    """The names that a part of a template needs, and those that must have no value."""

    needed: tuple[str, ...]
    absent: tuple[str, ...]

    def holds(self, values: Values) -> bool:
        """Returns whether the part is rendered."""
        return all([has_value(values.get(name)) for name in self.needed]) and not any(
            [has_value(values.get(name)) for name in self.absent]
        )


def has_value(value: Value) -> bool:
    """Returns whether a name has a value for `$with`: an empty text and an empty list are none."""
    return value is not None and (bool(value) or not isinstance(value, str | bytes | list))


def named(name: str, convert: Convert) -> Render:
    """Renders the value of a name, or nothing."""

    def render(values: Values, notices: list[Notice]) -> Value:
        value = values.get(name)
        return None if value is None else convert(value, notices)

    return render


def each_value(name: str, convert: Convert) -> Render:
    """Renders every value of a list."""
    return lambda values, notices: [convert(value, notices) for value in values.get(name) or ()] or None


def only(render: Render) -> Render:
    """Renders a value as a list."""
    return lambda values, notices: None if (value := render(values, notices)) is None else [value]


def listed(renders: Sequence[Render]) -> Render:
    """Renders several lists as one."""
    return lambda values, notices: [value for render in renders for value in render(values, notices) or ()] or None


def each_item(
    name: str, by: str | None, renders: Mapping[str, Render], joined: Sequence[FieldPath], lost: Lost | None = None
) -> Render:
    """Renders the list that each item becomes, by its variant. `joined`: the paths of repeated fields in which
    neighbours of a variant become one. `lost` tells of an item that becomes nothing."""

    def render(values: Values, notices: list[Notice]) -> Value:
        made: list[Value] = []
        before: object = None
        for item in values.get(name) or ():
            variant = "" if by is None else item[by]
            chosen = renders.get(variant)
            found = () if chosen is None else chosen({**values, **item}, notices) or ()
            if not found and lost is not None and (told := lost(item)) is not None:
                notices.append(told)
            for value in found:
                if joined and variant == before and (one := _as_one(made[-1], value, joined)) is not None:
                    made[-1] = one
                else:
                    made.append(value)
                before = variant
        return made or None

    return render


def _as_one(one: Value, other: Value, paths: Sequence[FieldPath]) -> Value:
    """Returns two messages as one with the items of both, or None if they differ in more than these lists."""
    if not isinstance(one, dict) or not isinstance(other, dict) or one.keys() != other.keys():
        return None
    made = dict(one)
    joined = False
    for key, value in one.items():
        below = [path[1:] for path in paths if path[0] == key]
        if () in below:
            made[key] = [*value, *other[key]]
        elif below:
            made[key] = _as_one(value, other[key], below)
        elif value != other[key]:
            return None
        if made[key] is None:
            return None
        joined = joined or bool(below)
    return made if joined else None
