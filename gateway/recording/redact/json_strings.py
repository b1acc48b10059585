"""Cuts a JSON text into its strings and what stands between them, so that they can be replaced where they stand."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from gateway.core.escapes import JSON
from gateway.recording.redact.places import ENTRY, Place

# Possessive: no text makes them try twice.
_STRING: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")', re.DOTALL)
_TOKEN: Final = re.compile(r"[ \t\r\n]*+([{}\[\],:]|-?[0-9][0-9.eE+-]*+|true|false|null)")
_REST: Final = re.compile(r"[ \t\r\n]*+")
_DEEPEST: Final = 100
# Of what stands between two strings so much is mostly one of few texts.
_SHORT: Final = 64
# Events have fewer pieces.
_MOST_ALIKE: Final = 256
_DIGITS: Final = str.maketrans("", "", "0123456789")
# What an object says about its place among others of its kind: pieces of one text say the same.
_SAID: Final = frozenset(("index", "output_index", "content_index", "item_id", "type"))

# The number of a piece, and that of the token in it; -1: the piece is a string.
Spot: TypeAlias = tuple[int, int]
Token: TypeAlias = tuple[str, int]
Said: TypeAlias = dict[str, Spot]


class NoJson(ValueError):
    """The text is no JSON, or nested too deep."""


class FoundString(NamedTuple):
    """A string that is a value: its number among the pieces of the text, where it stands, and what its object says."""

    piece: int
    place: Place
    said: Said


class JsonShape:
    """How the strings of a text belong together. `strings` are the values among them, `keys` the others, which name
    fields, by their pieces; `numbers` are the places of the numbers in objects of the client or its tools, by the piece
    that they stand in."""

    def __init__(self) -> None:
        self.strings: list[FoundString] = []
        self.keys: dict[int, str] = {}
        self.numbers: dict[int, list[tuple[int, int]]] = {}

    def has_keys_of(self, pieces: Sequence[str]) -> bool:
        """Returns whether the keys of other pieces are the same. Then their shape is, if what is between them is."""
        return [pieces[at] for at in self.keys] == [*self.keys.values()]


class JsonReader:
    """Cuts texts whose values have places below one root."""

    def __init__(self) -> None:
        self._root = Place()
        # Most events of a stream differ from others in values alone.
        self._known: dict[str, JsonShape] = {}

    def read(self, text: str) -> tuple[list[str], JsonShape]:
        """Returns the pieces of a JSON text, which joined are the text and of which every second one is a string with
        its quotes, and their shape. Brackets must fit, and values be apart; it is not checked further. Raises
        NoJson."""
        pieces: list[str] = _STRING.split(text)
        if len(pieces) > _MOST_ALIKE:
            return pieces, _ShapeReader(pieces, self._root).shape
        between = '"'.join(pieces[::2]).translate(_DIGITS)
        shape = self._known.get(between)
        if shape is None or not shape.has_keys_of(pieces):
            shape = _ShapeReader(pieces, self._root).shape
            if not shape.numbers:
                self._known[between] = shape
        return pieces, shape


class _Holder(NamedTuple):
    """An object or list that is not closed yet."""

    place: Place
    is_object: bool
    said: Said


class _ShapeReader:
    """Reads one shape. Raises NoJson."""

    def __init__(self, pieces: list[str], root: Place) -> None:
        self.shape = JsonShape()
        self._pieces = pieces
        self._holders: list[_Holder] = []
        self._holder = _Holder(root, False, {})
        # Where the next value stands; None: none may follow.
        self._next: Place | None = root
        self._key = ""
        self._read()

    def _read(self) -> None:
        # The string before, of which the next token says whether it is a key.
        string: int | None = None
        for at in range(0, len(self._pieces), 2):
            for number, (token, start) in enumerate(tokens(self._pieces[at])):
                if string is not None and token == ":":
                    self._take_key(string)
                else:
                    if string is not None:
                        self._take_string(string)
                    self._take(token, (at, number), start)
                string = None
            if string is not None:
                self._take_string(string)
            string = at + 1
        if self._holders or self._next is not None:
            raise NoJson

    def _take(self, token: str, spot: Spot, start: int) -> None:
        """Takes anything but a string and a colon behind one."""
        if token == ",":
            self._separate()
        elif token in "{[":
            self._open(token == "{")
        elif token in "}]":
            self._close(token == "}")
        elif token == ":":
            raise NoJson
        else:
            place = self._take_value(spot)
            if place.is_content and len(token) > 1 and token[0] in "-0123456789":
                self.shape.numbers.setdefault(spot[0], []).append((start, start + len(token)))

    def _take_key(self, piece: int) -> None:
        if not self._holder.is_object or self._next is not None:
            raise NoJson
        self.shape.keys[piece] = source = self._pieces[piece]
        self._key = JSON.decoded(source[1:-1])
        self._next = self._holder.place.below(self._key)

    def _take_string(self, piece: int) -> None:
        place = self._take_value((piece, -1))
        self.shape.strings.append(FoundString(piece, place, self._holder.said))

    def _take_value(self, spot: Spot) -> Place:
        """Takes a value that has no others in it. Returns its place."""
        place = self._next
        if place is None:
            raise NoJson
        self._next = None
        if self._holder.is_object and self._key in _SAID:
            self._holder.said[self._key] = spot
        return place

    def _separate(self) -> None:
        if not self._holders or self._next is not None:
            raise NoJson
        if not self._holder.is_object:
            self._next = self._holder.place.below(ENTRY)

    def _open(self, is_object: bool) -> None:
        place = self._next
        if place is None or len(self._holders) > _DEEPEST:
            raise NoJson
        self._holders.append(self._holder)
        self._holder = _Holder(place, is_object, {})
        self._next = None if is_object else place.below(ENTRY)

    def _close(self, is_object: bool) -> None:
        # A list may end where a value could stand, behind its beginning or a comma.
        if not self._holders or self._holder.is_object != is_object or (is_object and self._next is not None):
            raise NoJson
        self._holder = self._holders.pop()
        self._next = None


def said(pieces: Sequence[str], spots: Said) -> tuple[str, ...]:
    """Returns the facts about its place that an object of a text holds."""
    return tuple(
        [
            name + (pieces[at] if number < 0 else tokens(pieces[at])[number][0])
            for name, (at, number) in sorted(spots.items())
        ]
    )


def tokens(between: str) -> Sequence[Token]:
    """Returns the tokens between two strings, with their places. Raises NoJson."""
    return _known_tokens(between) if len(between) <= _SHORT else _read_tokens(between)


def _read_tokens(between: str) -> Sequence[Token]:
    found: list[Token] = []
    end = 0
    while match := _TOKEN.match(between, end):
        found.append((match[1], match.start(1)))
        end = match.end()
    if not _REST.fullmatch(between, end):
        raise NoJson
    return found


_known_tokens: Final = lru_cache(maxsize=4096)(_read_tokens)
