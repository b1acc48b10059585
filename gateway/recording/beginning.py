"""Reads the beginning of a body that is not here as a whole."""

import re
from typing import Final

import msgspec

# What stands beside every secret, and in none.
_BESIDE: Final = re.compile(rb"[\"\s]")
# A string, which may be cut, or what stands outside of strings.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{},]', re.DOTALL)
_CLOSING: Final = {b"{": b"}", b"[": b"]"}


def whole_words(data: bytes, *, from_start: bool = True, to_end: bool = True) -> bytes:
    """Returns bytes that were cut without the words that may not be whole at their start and at their end, unless it is
    known that they are: nobody recognises a secret by a part of it."""
    start, stop = 0, len(data)
    if not to_end:
        stop = max(data.rfind(mark) for mark in (b'"', b" ", b"\n", b"\t", b"\r")) + 1
    if not from_start:
        found = _BESIDE.search(data, 0, stop)
        start = stop if found is None else found.start()
    return data[start:stop]


def closed_json(beginning: bytes) -> bytes | None:
    """Returns the beginning of a JSON text as one that is whole: what is open at its end is closed, and an element that
    is not whole left out. None: it is the beginning of none."""
    open_marks: list[bytes] = []
    # Where the last element that is whole ends, and what closes the text behind it.
    end, closing, quote = 0, b"", b""
    for token in _TOKEN.finditer(beginning):
        mark = token[0]
        if mark in _CLOSING:
            open_marks.append(_CLOSING[mark])
        elif mark in (b"}", b"]"):
            if not open_marks:
                return None
            open_marks.pop()
        elif mark == b",":
            end, closing = token.start(), b"".join(reversed(open_marks))
        else:
            quote = b"" if len(mark) > 1 and mark.endswith(b'"') and _is_closed(mark) else b'"'
    closed = beginning.rstrip() if not quote else beginning
    for text in (closed + quote + b"".join(reversed(open_marks)), beginning[:end] + closing):
        if _is_json(text):
            return text
    return None


def _is_closed(string: bytes) -> bool:
    """Returns whether the quote at the end of a string is its end: it may be a part of it."""
    inner = string[1:-1]
    return (len(inner) - len(inner.rstrip(b"\\"))) % 2 == 0


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
