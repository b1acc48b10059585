"""Reads and writes the escapes of JSON strings, so that a string of another meaning has the same length."""

import re
from functools import lru_cache
from typing import Final

_ESCAPE: Final = re.compile(r"(\\u[0-9a-fA-F]{4}|\\.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@lru_cache(maxsize=4096)
def _meaning(escape: str) -> str:
    """Returns the character that an escape stands for."""
    return chr(int(escape[2:], 16)) if len(escape) == 6 else _PLAIN.get(escape[1], escape[1])


def decoded(source: str) -> str:
    """Returns what a string means; half characters stay apart."""
    if "\\" not in source:
        return source
    pieces = _ESCAPE.split(source)
    pieces[1::2] = map(_meaning, pieces[1::2])
    return "".join(pieces)


def written(source: str, meant: str) -> str:
    """Returns a string written with the same lengths as `source`, which means another text of as many characters."""
    if "\\" not in source:
        return meant
    pieces = _ESCAPE.split(source)
    end = 0
    for at in range(0, len(pieces) - 1, 2):
        start, end = end, end + len(pieces[at])
        pieces[at] = meant[start:end]
        if len(escape := pieces[at + 1]) == 6:
            pieces[at + 1] = _written(escape, meant[end])
        end += 1
    return "".join([*pieces[:-1], meant[end:]])


def _written(was: str, new: str) -> str:
    """Returns a character as an escape; any other escape than by number is a quote, slash or line end, and stays."""
    return was if _meaning(was) == new else f"\\u{ord(new):04x}"
