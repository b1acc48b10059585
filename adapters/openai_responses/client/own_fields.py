"""Puts what the gateway writes of an item into what a backend of the same API wrote of it."""

from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import Json, JsonObject

# What the events of the core hold, and the places among the items of the gateway's answer.
_MADE: Final = frozenset(
    {"id", "item_id", "output_index", "content_index", "summary_index", "annotation_index"}
    | {"text", "refusal", "delta", "arguments", "input", "call_id", "name", "content", "summary"}
)
# Fields that the events of both have as objects.
_OBJECTS: Final = ("item", "part")


def with_own(made: Mapping[str, Json], own: JsonObject) -> dict[str, Json]:
    """Returns the fields of the backend's event, item or part with those that the gateway makes, and with those that
    the published types require where the backend left them out."""
    fields = {name: value for name, value in own.items() if name != "sequence_number"}
    for name, value in made.items():
        inner = own.get(name)
        if name in _OBJECTS and isinstance(value, dict) and isinstance(inner, dict):
            fields[name] = with_own(value, inner)
        elif name in _MADE or name not in own or (name == "status" and value == "incomplete"):
            fields[name] = value
    return fields


def parts_with_own(made: Mapping[int, JsonObject], own: Json) -> list[Json]:
    """Returns the parts of an item: those of the backend's own, with what was made at the same place."""
    parts = own if isinstance(own, list) else []
    merged: list[Json] = []
    # A backend may write any position.
    for position in sorted({*range(len(parts)), *made}):
        part = parts[position] if position < len(parts) else None
        if position not in made:
            merged += [] if part is None else [part]
        elif isinstance(part, dict):
            merged.append(with_own(made[position], part))
        else:
            merged.append(dict(made[position]))
    return merged
