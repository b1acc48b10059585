"""The objects in the events of a stream by their paths, and their fields that no reference has."""

from collections.abc import Iterable, Iterator

from gateway.adapter import EventFields
from gateway.core.conversation import Json, JsonObject


def unknown_fields(events: Iterable[Json], known: EventFields) -> list[str]:
    """Returns the paths of the fields that events have and their wire does not, sorted."""
    found = {
        f"{path}.{name}".lstrip(".")
        for event in events
        for path, fields in objects(event)
        if path in known
        for name in fields.keys() - known[path]
    }
    return sorted(found)


def objects(value: Json, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Yields each object in a JSON value with its path; the items of a list have one path."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item, f"{path}[]")
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            yield from objects(inner, f"{path}.{name}".lstrip("."))
