"""Sets keys in the text of a settings file, and leaves every other character as it is."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}\[\]]')
_INDENT: Final = 2


class _Key(msgspec.Struct, frozen=True):
    """A key by its path: where it begins, and where its value does."""

    path: tuple[str, ...]
    begin: int
    value: int


def with_keys(text: str, keys: Mapping[tuple[str, ...], Json]) -> str:
    """Returns the text with these values, each at the path of its key; objects on the way are added where they are
    missing. Raises SettingsError where the value on the way is no object."""
    for path, value in keys.items():
        text = _with_key(text, path, value)
    return text


def _with_key(text: str, path: tuple[str, ...], value: Json) -> str:
    known = {key.path: key for key in _keys(text)}
    if path in known:
        return _replaced(text, known[path].value, value)
    above = path[:-1]
    while above and above not in known:
        above = above[:-1]
    for name in reversed(path[len(above) + 1 :]):
        value = {name: value}
    begin = known[above].value if above else text.index("{")
    if text[begin] != "{":
        raise SettingsError(f"{'.'.join(above)} must be an object")
    return _inserted(text, begin + 1, len(above) + 1, path[len(above)], value)


def _replaced(text: str, begin: int, value: Json) -> str:
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return f"{text[:begin]}{json.dumps(value, ensure_ascii=False)}{text[end:]}"


def _inserted(text: str, at: int, depth: int, name: str, value: Json) -> str:
    """Puts a key at the beginning of an object, in the form of the key that follows it."""
    blank = re.match(r"\s*", text[at:])
    gap = blank[0] if blank else ""
    empty = text[at + len(gap)] == "}"
    if "\n" in gap and not empty:
        before, after = gap, ","
    elif empty and depth == 1:
        before, after = "\n" + " " * _INDENT, "\n"
        gap = ""
    else:
        before, after = "", "" if empty else ", "
    return f"{text[:at]}{before}{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}{after}{text[at:]}"


def _keys(text: str) -> Iterator[_Key]:
    """Yields every key of an object that is in no list."""
    above: list[str | None] = []
    key: str | None = None
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            above.append(key if token[0] == "{" else None)
            key = None
        elif token[0] in "}]":
            above.pop()
        elif token[1]:
            key = json.loads(token[0][: token[0].rindex('"') + 1])
            names = above[1:]
            if None not in names:
                space = re.compile(r"\s*").match(text, token.end())
                value = space.end() if space else token.end()
                yield _Key((*(name for name in names if name is not None), key), token.start(), value)
