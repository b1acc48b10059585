"""An object of a backend in, those of its fields out that nobody here reads."""

from gateway.types import EMPTY, Json, JsonObject


def unknown_fields(fields: dict[str, Json], known: frozenset[str]) -> JsonObject:
    """The fields that are not known; null ones say nothing."""
    if known.issuperset(fields):
        return EMPTY
    return {key: value for key in fields if key not in known and (value := fields[key]) is not None}
