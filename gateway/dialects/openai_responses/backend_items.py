"""Places the items that only a backend of the same dialect knows (`web_search_call`, ...) among those of the answer."""

from collections.abc import Iterator
from typing import Final

from gateway.core.conversation import JsonObject
from gateway.dialects.openai_responses.output_items import ItemEvent, added

_PREFIX: Final = "response."
# The place of an event in the backend's own stream.
_REPLACED: Final = frozenset({"type", "sequence_number", "output_index"})


class BackendItems:
    """The items of one answer, by their ids; those without one by their indexes in the backend's own answer."""

    def __init__(self) -> None:
        self._indexes: dict[str | int, int] = {}

    def events(self, event: JsonObject, free: int) -> Iterator[ItemEvent]:
        """Yields the event with its index in the answer; `free` is that of a new item, which is added if it was not."""
        kind = event_kind(event)
        fields = {name: value for name, value in event.items() if name not in _REPLACED}
        item = fields.get("item")
        name = _name(event)
        index = None if name is None else self._indexes.get(name)
        if index is None and (isinstance(item, dict) or isinstance(name, str)):
            index = free
            if name is not None:
                self._indexes[name] = free
            if kind != "output_item.added" and isinstance(item, dict):
                yield added(item, free)
        yield ItemEvent(kind, fields if index is None else {**fields, "output_index": index})


def event_kind(event: JsonObject) -> str:
    """Returns the type of an event behind `response.`."""
    return str(event.get("type", "")).removeprefix(_PREFIX)


def _name(event: JsonObject) -> str | int | None:
    """Returns the id of the item that an event is about, or its index in the backend's own answer."""
    item = event.get("item")
    names = (item.get("id") if isinstance(item, dict) else event.get("item_id"), event.get("output_index"))
    return next((name for name in names if isinstance(name, str | int)), None)
