"""Finds a field of the JSON object that is a body, while it passes by: nothing is kept of it but the place.

Readers of JSON differ: of two fields with one name most take the last, some the first; some take `Model` for `model`,
accept comments or what stands behind the object, or guess UTF-16. Where two readers could find different values, the
body is refused: a check of the value then holds for whatever reads it next. All else is for that reader to judge.
"""

import enum
import re
from functools import reduce
from typing import Final

import msgspec

from gateway.framing.body_field import FieldFault

# Of an object with more fields than any API has.
MOST_FIELDS: Final = 1000
# What is nested deeper many readers refuse.
DEEPEST: Final = 500
# The longest value, as it is written.
_LONGEST: Final = 2048
# Each letter of a name may be written as six bytes.
_PER_LETTER: Final = 6
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_SCALAR: Final = re.compile(rb"[-+.0-9A-Za-z]*+")
# The rest of a string, up to its end or that of the piece; an escape that is cut stays.
_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
# What stands between the brackets of a nested value: strings, and what is nested a few times, are passed over as a
# whole. Whether a bracket closes the one that was opened is for the next reader to judge.
_FLAT: Final = rb'[-+.0-9A-Za-z,: \t\r\n]++|"(?:[^"\\]++|\\.)*+"'
_INNER: Final = reduce(lambda inner, _: rb"%b|[\[{](?:%b)*+[\]}]" % (_FLAT, inner), range(8), _FLAT)
_NESTED: Final = re.compile(rb"(?:%b)*+" % _INNER, re.DOTALL)
_QUOTE, _BACKSLASH, _OPENS, _CLOSES = b'"', b"\\", b"[{", b"]}"

_NOT_JSON: Final = "it is not one JSON object"


class _State(enum.Enum):
    BEGIN = enum.auto()
    FIRST_KEY = enum.auto()
    KEY = enum.auto()
    IN_KEY = enum.auto()
    COLON = enum.auto()
    VALUE = enum.auto()
    IN_VALUE = enum.auto()
    SCALAR = enum.auto()
    NESTED = enum.auto()
    IN_NESTED_STRING = enum.auto()
    COMMA = enum.auto()
    END = enum.auto()


class JsonField:
    """Finds a field by its name, in lower case. A `BodyField`."""

    def __init__(self, name: str) -> None:
        self.value: str | None = None
        self.span = (0, 0)
        self._name = name
        self._state = _State.BEGIN
        self._depth = 0
        self._fields = 0
        # The string that is being read, while it may matter; None: it is too long to.
        self._text: bytes | None = b""
        self._longest = 0
        self._named = False
        # A backslash at the end of a piece.
        self._cut = b""
        # Where the present bytes begin, and where the value did.
        self._at = 0
        self._began = 0

    def feed(self, data: bytes) -> None:
        if data.find(b"\0") >= 0:
            raise FieldFault("it is not JSON in UTF-8")
        data, self._cut = self._cut + data, b""
        position, start = 0, self._at
        while position < len(data):
            position = self._step(data, position, start)
        self._at = start + len(data) - len(self._cut)

    def close(self) -> None:
        if self._state is not _State.END:
            raise FieldFault("it is not a whole JSON object")

    def encode(self, value: str) -> bytes:
        return msgspec.json.encode(value)

    def _step(self, data: bytes, position: int, start: int) -> int:
        """Reads on from a position, and returns the next one."""
        state = self._state
        if state is _State.NESTED:
            return self._nested(data, position)
        if state in (_State.IN_KEY, _State.IN_VALUE, _State.IN_NESTED_STRING):
            return self._string(data, position, start)
        if state is _State.SCALAR:
            position = _end(_SCALAR, data, position)
            if position < len(data):
                self._state = _State.COMMA
            return position
        position = _end(_SPACE, data, position)
        if position == len(data):
            return position
        return self._token(data[position : position + 1], position, start)

    def _token(self, token: bytes, position: int, start: int) -> int:
        """Reads a token of the object itself, and returns the position of what follows."""
        state = self._state
        if state is _State.BEGIN and token == b"{":
            self._state = _State.FIRST_KEY
        elif state in (_State.FIRST_KEY, _State.KEY) and token == _QUOTE:
            self._begin_string(_State.IN_KEY, len(self._name) * _PER_LETTER)
        elif state in (_State.FIRST_KEY, _State.COMMA) and token == b"}":
            self._state = _State.END
        elif state is _State.COLON and token == b":":
            self._state = _State.VALUE
        elif state is _State.COMMA and token == b",":
            self._state = _State.KEY
        elif state is _State.VALUE:
            return self._value(token, position, start)
        else:
            raise FieldFault(_NOT_JSON)
        return position + 1

    def _value(self, token: bytes, position: int, start: int) -> int:
        if self._named and token != _QUOTE:
            raise FieldFault(f"its field {self._name!r} is not a text")
        if token == _QUOTE:
            self._began = start + position
            self._begin_string(_State.IN_VALUE, _LONGEST if self._named else 0)
        elif token in _OPENS:
            self._depth = 1
            self._state = _State.NESTED
        elif _SCALAR.fullmatch(token):
            self._state = _State.SCALAR
            return position
        else:
            raise FieldFault(_NOT_JSON)
        return position + 1

    def _nested(self, data: bytes, position: int) -> int:
        depth, size = self._depth, len(data)
        while depth and (position := _end(_NESTED, data, position)) < size:
            token = data[position : position + 1]
            position += 1
            if token in _OPENS:
                depth += 1
                if depth > DEEPEST:
                    raise FieldFault(f"it is nested more than {DEEPEST} deep")
            elif token in _CLOSES:
                depth -= 1
            elif token == _QUOTE:
                self._begin_string(_State.IN_NESTED_STRING, 0)
                break
            else:
                raise FieldFault(_NOT_JSON)
        self._depth = depth
        if not depth:
            self._state = _State.COMMA
        return position

    def _begin_string(self, state: _State, longest: int) -> None:
        self._state = state
        self._longest = longest
        self._text = b""

    def _string(self, data: bytes, position: int, start: int) -> int:
        end = _end(_STRING, data, position)
        if self._text is not None:
            self._text = self._text + data[position:end] if len(self._text) + end - position <= self._longest else None
        if end == len(data):
            return end
        if data[end : end + 1] == _BACKSLASH:
            self._cut = data[end:]
            return len(data)
        if self._state is _State.IN_KEY:
            self._end_key()
        elif self._state is _State.IN_NESTED_STRING:
            self._state = _State.NESTED
        else:
            self._end_value(start + end + 1)
        return end + 1

    def _end_key(self) -> None:
        self._state = _State.COLON
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise FieldFault(f"it has more than {MOST_FIELDS} fields")
        key = "" if self._text is None else _decoded(self._text)
        self._named = key.lower() == self._name
        if not self._named:
            return
        if self.value is not None:
            raise FieldFault(f"it has two fields {self._name!r}")
        if key != self._name:
            raise FieldFault(f"its field {self._name!r} is not written in lower case")

    def _end_value(self, end: int) -> None:
        self._state = _State.COMMA
        if not self._named:
            return
        if self._text is None:
            raise FieldFault(f"its field {self._name!r} is too long")
        self.value = _decoded(self._text)
        self.span = (self._began, end)


def _decoded(text: bytes) -> str:
    try:
        return msgspec.json.decode(b'"%b"' % text, type=str)
    except ValueError:  # also of UTF-8
        raise FieldFault("it is not JSON in UTF-8") from None


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    found = pattern.match(data, position)
    return position if found is None else found.end()
