"""Adds to a value what no published type has."""

from typing import Any, Final

# Of a name that no API has: an object, and null.
NEW_FIELDS: Final[dict[str, Any]] = {"x_new": {"of": ["tomorrow", None, 1.5]}, "x_null": None}


def with_new_fields(value: Any) -> Any:
    """Returns a JSON value with two new fields in each of its objects."""
    if isinstance(value, list):
        return [with_new_fields(item) for item in value]
    if isinstance(value, dict):
        return {**{name: with_new_fields(inner) for name, inner in value.items()}, **NEW_FIELDS}
    return value
