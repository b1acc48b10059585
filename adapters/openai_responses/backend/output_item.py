"""Defines what every type of output item has in common.

Every text arrives in pieces, then whole in the event that ends its part, and once more in the item that ends it all. A
backend may leave the pieces out: what they lack of the whole text is an event as well.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

from gateway.core.conversation import JsonObject
from gateway.core.events import Event

# The type of a part, and its position: in the content of its item or in the summary.
Place: TypeAlias = tuple[str, int]

# Stands for bytes that are no text, in a piece and in the whole text not always alike.
_MENDED: Final = "\ufffd"


class Pieces:
    """The pieces of one text; `make` makes the event of each, and `keep` keeps the piece for the comparison with the
    whole text."""

    def __init__(self, make: Callable[[str], Event]) -> None:
        self.make = make
        self._pieces: list[str] = []
        self.keep = self._pieces.append

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: str) -> Event:
        """Returns the event of one more piece, which is not empty."""
        self.keep(piece)
        return self.make(piece)

    def joined(self) -> str:
        """Returns the text of all pieces."""
        return "".join(self._pieces)

    def rest_of(self, whole: str) -> str | None:
        """Returns what the pieces lack of the whole text; None: they differ from it. An empty whole text says nothing,
        and where a character could not be read, nothing is compared."""
        joined = self.joined()
        if whole.startswith(joined):
            return whole[len(joined) :]
        return None if whole and _MENDED not in joined and _MENDED not in whole else ""


def unknown_fields(fields: JsonObject, known: frozenset[str]) -> JsonObject:
    """Returns the fields that are not known, without those that hold nothing."""
    return {name: value for name, value in fields.items() if name not in known and value not in (None, [])}


def fields_of_end(begun: JsonObject, ended: JsonObject) -> JsonObject:
    """Returns the fields of an item at its end that it did not have, or had with another value, when it began."""
    return {name: value for name, value in ended.items() if begun.get(name) != value}


class OutputItem(Protocol):
    """One item between its beginning and its end, of this type. Every method may raise BackendProtocolError."""

    type: str

    def pieces(self, place: Place) -> Pieces | None:
        """Returns the part that has begun at this place, if there is one that a further piece stands in."""
        ...

    def piece(self, place: Place, text: str) -> Iterator[Event]:
        """Yields the events of a further piece, which is not empty."""
        ...

    def whole(self, place: Place, text: str) -> Iterator[Event]:
        """Yields the events of what the pieces lack of a whole text."""
        ...

    def end(self, event: JsonObject, item: JsonObject) -> Iterator[Event]:
        """Yields the events of the whole item, which is that of this event."""
        ...

    def close(self) -> Iterator[Event]:
        """Yields the events of the end of an item in a complete response, which did not come."""
        ...

    def cut(self) -> Iterator[Event]:
        """Yields the events of an item that stays incomplete."""
        ...
