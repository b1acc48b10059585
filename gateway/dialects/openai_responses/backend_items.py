"""Places the items that only a backend of the same dialect knows (`web_search_call`, ...) among those of the answer."""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.core.conversation import Json, JsonObject
from gateway.dialects.openai_responses.output_items import ItemEvent, added

_PREFIX: Final = "response."
# The place of an event in the backend's own stream.
_REPLACED: Final = frozenset({"type", "sequence_number", "output_index"})


class BackendItems:
    """The items of one answer, by their ids."""

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}

    def events(self, event: JsonObject, free: int) -> Iterator[ItemEvent]:
        """Yields the event with its index in the answer; `free` is that of a new item, which is added if it was not."""
        kind = event_kind(event)
        fields = {name: value for name, value in event.items() if name not in _REPLACED}
        identity = _identity(fields)
        if identity is None:
            yield ItemEvent(kind, fields)
            return
        if identity not in self._indexes:
            self._indexes[identity] = free
            item = fields.get("item")
            if kind != "output_item.added" and isinstance(item, dict):
                yield added(item, free)
        yield ItemEvent(kind, {**fields, "output_index": self._indexes[identity]})


def event_kind(event: JsonObject) -> str:
    """Returns the type of an event behind `response.`."""
    return str(event.get("type", "")).removeprefix(_PREFIX)


def _identity(fields: Mapping[str, Json]) -> str | None:
    item = fields.get("item")
    identity = item.get("id") if isinstance(item, dict) else fields.get("item_id")
    return identity if isinstance(identity, str) else None
