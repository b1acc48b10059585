"""Finds the strings and numbers of a JSON text with their places, so that they can be replaced where they stand."""

import re
from typing import Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["string", "number"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_ESCAPE: Final = re.compile(r"\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST: Final = 100


class NoJson(ValueError):
    """The text is no JSON, or nested too deep."""


class Found(msgspec.Struct, frozen=True):
    """A string (without its quotes) or a number, from `start` to `stop`. `path` are the keys that lead to it; a list
    has no key of its own, but `[]`. `holder` is the object or list that it stands in: `(number, position)`."""

    kind: Kind
    start: int
    stop: int
    path: tuple[str, ...]
    holder: int


class JsonStrings:
    """The strings and numbers of one text. `found` are all values; `keys` the names of all fields; `scalars` the
    fields of each object that are no objects or lists, by its number. Raises NoJson."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.found: list[Found] = []
        self.keys: set[str] = set()
        self.scalars: dict[int, dict[str, str]] = {}
        self._holders = 0
        end = self._value(self._space(0), (), 0, 0)
        if self._space(end) != len(text):
            raise NoJson

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _value(self, at: int, path: tuple[str, ...], holder: int, depth: int) -> int:
        if depth > _DEEPEST:
            raise NoJson
        opening = self._text[at : at + 1]
        if opening == "{":
            return self._object(at, path, depth)
        if opening == "[":
            return self._list(at, path, depth)
        return self._scalar(at, path, holder)

    def _scalar(self, at: int, path: tuple[str, ...], holder: int) -> int:
        if self._text[at : at + 1] == '"':
            end = self._string(at)
            self.found.append(Found("string", at + 1, end - 1, path, holder))
        elif match := _SCALAR.match(self._text, at):
            end = match.end()
            if self._text[at] in "-0123456789":
                self.found.append(Found("number", at, end, path, holder))
        else:
            raise NoJson
        if path and path[-1] != "[]":
            self.scalars.setdefault(holder, {})[path[-1]] = self._text[at:end].strip('"')
        return end

    def _string(self, at: int) -> int:
        match = _STRING.match(self._text, at)
        if match is None:
            raise NoJson
        return match.end()

    def _object(self, at: int, path: tuple[str, ...], depth: int) -> int:
        self._holders += 1
        holder = self._holders
        at = self._space(at + 1)
        while self._text[at : at + 1] != "}":
            end = self._string(at)
            key = decoded(self._text[at + 1 : end - 1])
            self.keys.add(key)
            at = self._space(end)
            self._expect(at, ":")
            at = self._next(self._value(self._space(at + 1), (*path, key), holder, depth + 1), "}")
        return at + 1

    def _list(self, at: int, path: tuple[str, ...], depth: int) -> int:
        self._holders += 1
        holder = self._holders
        at = self._space(at + 1)
        while self._text[at : at + 1] != "]":
            at = self._next(self._value(at, (*path, "[]"), holder, depth + 1), "]")
        return at + 1

    def _next(self, at: int, closing: str) -> int:
        at = self._space(at)
        if self._text[at : at + 1] == closing:
            return at
        self._expect(at, ",")
        return self._space(at + 1)

    def _expect(self, at: int, char: str) -> None:
        if self._text[at : at + 1] != char:
            raise NoJson


def _meant(escape: str) -> str:
    """Returns the character that an escape stands for."""
    return chr(int(escape[2:], 16)) if len(escape) == 6 else _PLAIN.get(escape[1], escape[1])


def decoded(source: str) -> str:
    """Returns what a string means; half characters stay apart."""
    return _ESCAPE.sub(lambda match: _meant(match[0]), source) if "\\" in source else source


def written(source: str, meant: str) -> str:
    """Returns a string written with the same lengths as `source`, which means another text of as many characters."""
    if "\\" not in source:
        return meant
    parts: list[str] = []
    end = at = 0
    for match in _ESCAPE.finditer(source):
        plain = at + match.start() - end
        parts += (meant[at:plain], _written(_meant(match[0]), match[0], meant[plain]))
        end, at = match.end(), plain + 1
    return "".join([*parts, meant[at:]])


def _written(old: str, was: str, new: str) -> str:
    if old == new or len(was) == 2:
        return was  # an escaped quote, slash or line end stays
    return new if len(was) == 1 else f"\\u{ord(new):04x}"
