"""Collects a text that arrives in pieces, and compares it with the whole text that the wire repeats after them."""

from collections.abc import Callable
from typing import Final

from gateway.core.events import Event

# Stands for bytes that are no text, in a piece and in the whole text not always alike.
_MENDED: Final = "\ufffd"


class Pieces:
    """The pieces of one text; `make` makes the event of each."""

    def __init__(self, make: Callable[[str], Event]) -> None:
        self._make = make
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: str) -> Event:
        """Return the event of one more piece, which is not empty."""
        self._pieces.append(piece)
        return self._make(piece)

    def joined(self) -> str:
        """Return the text of all pieces."""
        return "".join(self._pieces)

    def rest_of(self, whole: str) -> str | None:
        """Return what the pieces lack of the whole text; None: they differ from it. An empty whole text says nothing,
        and where a character could not be read, nothing is compared."""
        said = self.joined()
        if whole.startswith(said):
            return whole[len(said) :]
        return None if whole and _MENDED not in said and _MENDED not in whole else ""
