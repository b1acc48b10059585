"""Splits a text into word-like pieces, as a model streams them; the pieces concatenate to exactly that text."""

import re
from typing import Final

_PIECE: Final = re.compile(r"\s*\S{1,12}|\s+")


def pieces(text: str) -> list[str]:
    """Splits the text. Leading blanks stay with their word; a long word is split."""
    return _PIECE.findall(text)


def vocabulary(text: str) -> frozenset[str]:
    """Returns the words of a list that is written as text for readability."""
    return frozenset(text.split())


def count(text: str) -> int:
    """Returns the number of tokens as these backends count them."""
    return len(pieces(text))
