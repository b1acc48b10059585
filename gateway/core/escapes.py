"""Reads and writes texts with escapes, so that a text of another meaning has the same length."""

import re
from functools import lru_cache
from typing import Final

_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Escapes:
    """One way to write characters as escapes. `pattern` matches one of them, and each begins with one of `marks`."""

    def __init__(self, pattern: str, marks: str) -> None:
        self._escape = re.compile(f"({pattern})", re.DOTALL)
        self._marks = marks

    def _may_be_in(self, source: str) -> bool:
        return any(mark in source for mark in self._marks)

    def decoded(self, source: str) -> str:
        """Returns the meaning of a text; half characters stay apart."""
        if not self._may_be_in(source):
            return source
        pieces = self._escape.split(source)
        pieces[1::2] = map(_meaning, pieces[1::2])
        return "".join(pieces)

    def written(self, source: str, meant: str) -> str:
        """Returns a text written with the same lengths as `source`, which means another text of as many characters."""
        if not self._may_be_in(source):
            return meant
        pieces = self._escape.split(source)
        end = 0
        for at in range(0, len(pieces) - 1, 2):
            start, end = end, end + len(pieces[at])
            pieces[at] = meant[start:end]
            pieces[at + 1] = _written(pieces[at + 1], meant[end])
            end += 1
        return "".join([*pieces[:-1], meant[end:]])


@lru_cache(maxsize=4096)
def _meaning(escape: str) -> str:
    """Returns the character that an escape stands for."""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    return chr(int(escape[2:], 16)) if len(escape) == 6 else _PLAIN.get(escape[1], escape[1])


def _written(was: str, new: str) -> str:
    """Returns a character as an escape of the same kind; one that is no number is a quote, slash or line end, and
    stays."""
    if _meaning(was) == new:
        return was
    if was[0] == "%":
        return f"%{ord(new):02X}"
    return f"\\u{ord(new):04x}" if len(was) == 6 else was


_JSON: Final = r"\\u[0-9a-fA-F]{4}|\\."
# Those of printable ASCII alone (RFC 3986): other bytes are parts of characters, and of no key.
_PERCENT: Final = "%[2-7][0-9A-Fa-f]"
JSON: Final = Escapes(_JSON, "\\")
PERCENT: Final = Escapes(_PERCENT, "%")
JSON_OR_PERCENT: Final = Escapes(f"{_JSON}|{_PERCENT}", "\\%")
