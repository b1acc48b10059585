"""Adds the line number to a message about a key of a settings file."""

import json
import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}\[\]]')
_UNKNOWN: Final = "unknown setting '"


def with_line(text: str, message: str) -> str:
    """Returns `line 3: server.port: ...` for a message that begins with a key of this (well-formed) JSON text."""
    found = find_key(text, message)
    return f"line {found[1]}: {message}" if found else message


def find_key(text: str, message: str) -> tuple[str, int] | None:
    """Returns the path of the key with which a message begins, and its line; None for another message."""
    about = message.removeprefix(_UNKNOWN)
    return max(((path, line) for path, line in key_lines(text) if begins(about, path)), default=None, key=_length)


def key_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yields every key with its parent keys, and its line. Contents of a list have no key of their own."""
    above: list[str | None] = []
    key: str | None = None
    line, position = 1, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            above.append(key)
            key = None
        elif token[0] in "}]":
            above.pop()
        elif token[1]:
            key = token[0][1 : token[0].rindex('"')]
            line += text.count("\n", position, token.start())
            position = token.start()
            yield ".".join(part for part in (*above, key) if part is not None), line


def repeated_key(text: str) -> tuple[str, int]:
    """Returns the first key that an object has twice, and its second line. Raises ValueError where there is none."""
    above: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            above.append(set())
        elif token[0] in "}]":
            above.pop()
        elif token[1]:
            key: str = json.loads(token[0][: token[0].rindex('"') + 1])
            if key in above[-1]:
                return key, text.count("\n", 0, token.start()) + 1
            above[-1].add(key)
    raise ValueError("no key is repeated")


def begins(about: str, path: str) -> bool:
    """Returns whether a message is about the key at this path."""
    return about.startswith(path) and not about[len(path) : len(path) + 1].isalnum()


def _length(found: tuple[str, int]) -> int:
    return len(found[0])
