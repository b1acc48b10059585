"""Places the items that only a backend of the same dialect knows (`web_search_call`, ...) among those of the answer."""

from collections.abc import Iterator
from typing import Final

from adapters.openai_responses.client.output_items import ItemEvent, added, event_kind
from gateway.core.conversation import JsonObject

# The place of an event in the backend's own stream.
_REPLACED: Final = frozenset({"sequence_number", "output_index"})


class BackendItems:
    """The indexes of all items of a backend's answer in that of the gateway, by those that they have there."""

    def __init__(self) -> None:
        self._indexes: dict[int, int] = {}

    def place(self, event: JsonObject, index: int) -> None:
        """Notes the index of the item that the event is about."""
        if type(own := event.get("output_index")) is int:
            self._indexes[own] = index

    def begins(self, event: JsonObject) -> bool:
        """Returns whether the event is one of the API about an item that is not placed."""
        own = event.get("output_index")
        placed = type(own) is int and own in self._indexes
        return not placed and isinstance(event.get("item"), dict) and event_kind(event) != ""

    def events(self, event: JsonObject, free: int) -> Iterator[ItemEvent]:
        """Yields the event with its index in the answer; `free` is that of a new item, which is added if it was not."""
        fields = {name: value for name, value in event.items() if name not in _REPLACED}
        own, item = event.get("output_index"), fields.get("item")
        index = self._indexes.get(own) if type(own) is int else None
        if isinstance(item, dict) and self.begins(event):
            index = free
            self.place(event, free)
            if event_kind(event) != "output_item.added":
                yield added(item, free)
        yield ItemEvent(event_kind(event), fields if index is None else {**fields, "output_index": index})
