"""Selects the fields of a backend's object that the gateway does not interpret."""

from gateway.core.conversation import EMPTY, Json, JsonObject


def unknown_fields(fields: dict[str, Json], known: frozenset[str]) -> JsonObject:
    """Return the fields that are not known, without those that are null."""
    if known.issuperset(fields):
        return EMPTY
    return {key: value for key in fields if key not in known and (value := fields[key]) is not None}
