"""A text in, the pieces a model would stream out: word-like, and concatenating to exactly that text."""

import re
from typing import Final

_PIECE: Final = re.compile(r"\s*\S{1,12}|\s+")


def pieces(text: str) -> list[str]:
    """Leading blanks stay with their word; a long word is cut."""
    return _PIECE.findall(text)


def vocabulary(text: str) -> frozenset[str]:
    """The words of a list that is easier to read as text."""
    return frozenset(text.split())


def count(text: str) -> int:
    """What these backends call tokens."""
    return len(pieces(text))
