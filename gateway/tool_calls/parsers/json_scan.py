"""Finds where the parts of JSON text in pieces begin and end; reads each character once, and decodes nothing.

One step function per state; the state is the step to take next:

    value -> { key -> colon -> value -> after -> (comma) key ... -> } after
             [ value -> after -> (comma) value ... -> ] after
             string (escape, hexadecimal)     token: a number, true, false, null

Strings may hold content that models write although JSON forbids it: raw control characters and a backslash before any
character. The scan then stops with `REPAIRED` and gives the replacement, which never revokes earlier output.
"""

import re
from enum import Enum
from typing import Final

import msgspec

# JSON allows these characters between its parts.
BLANKS: Final = " \t\n\r"

_BLANK: Final = re.compile(f"[{BLANKS}]*+")
_PLAIN: Final = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_TOKEN: Final = re.compile(r"[-+.0-9A-Za-z]*+")
_LITERAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_ESCAPES: Final = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}


class Signal(Enum):
    """The reason why a scan stopped. Those of keys and values concern the outermost object only."""

    MORE = "the end of the text is reached"
    KEY = "a key has ended"
    VALUE = "a value begins at the cursor"
    VALUE_END = "a value has ended before the cursor"
    END = "the whole value has ended before the cursor"
    REPAIRED = "the character before the cursor must be written as `repaired`"
    BROKEN = "the character at the cursor is not allowed there"


class JsonScanner:
    """Scans one JSON value. `scan` returns the cursor, and `signal` says why it stopped."""

    def __init__(self) -> None:
        self.signal = Signal.MORE
        self.repaired = ""
        self._step = self._value
        self._open: list[str] = []
        self._is_key = False
        self._announced = False
        self._digits = 0
        self._token: list[str] = []

    def scan(self, text: str, at: int) -> int:
        """Scans from the cursor to the next signal."""
        self.signal = Signal.MORE
        end = len(text)
        while at < end and self.signal is Signal.MORE:
            at = self._step(text, at)
        return at

    def passes(self, text: str) -> bool:
        """Returns whether all of the text lies in the open string and is valid JSON there: it needs no scan."""
        return self._step == self._string and _PLAIN.fullmatch(text) is not None

    def pass_over(self) -> None:
        """Takes the value at whose beginning the scan stopped as read; the cursor must now be behind it."""
        self._step = self._after

    def _value(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at == len(text):
            return at
        if len(self._open) == 1 and not self._announced:
            self._announced = True
            self.signal = Signal.VALUE
            return at
        return self._begin(text, at)

    def _begin(self, text: str, at: int) -> int:
        match text[at]:
            case "{":
                self._open.append("}")
                self._step = self._first_key
            case "[":
                self._open.append("]")
                self._step = self._first_value
            case '"':
                self._is_key = False
                self._step = self._string
            case character if _TOKEN.fullmatch(character):
                self._step = self._literal
                return at
            case _:
                return self._break(at)
        return at + 1

    def _first_value(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at < len(text) and text[at] == "]":
            return self._shut(at)
        self._step = self._first_value if at == len(text) else self._value
        return at

    def _first_key(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at < len(text) and text[at] == "}":
            return self._shut(at)
        return self._key(text, at)

    def _key(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at == len(text):
            return at
        if text[at] != '"':
            return self._break(at)
        self._is_key = True
        self._step = self._string
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._break(at)
        self._announced = False
        self._step = self._value
        return at + 1

    def _after(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at == len(text):
            return at
        closer = self._open[-1]
        if text[at] == closer:
            return self._shut(at)
        if text[at] != ",":
            return self._break(at)
        self._step = self._key if closer == "}" else self._value
        return at + 1

    def _string(self, text: str, at: int) -> int:
        found = _PLAIN.match(text, at)
        at = found.end() if found else at
        if at == len(text):
            return at
        character = text[at]
        if character == '"':
            self._end_string()
        elif character == "\\":
            self._step = self._escape
        else:
            self._repair("\\" + _escaped(character))
        return at + 1

    def _escape(self, text: str, at: int) -> int:
        """The backslash has been emitted already: the text after it must complete a valid escape."""
        character = text[at]
        self._step = self._string
        if character == "u":
            self._digits = 4
            self._step = self._hexadecimal
        elif character < " ":
            self._repair(_escaped(character))
        elif character == "'":
            self._repair("u0027")
        elif character not in '"\\/bfnrt':
            self._repair("\\" + character)
        return at + 1

    def _hexadecimal(self, text: str, at: int) -> int:
        if text[at] not in _HEXADECIMAL:
            return self._break(at)
        self._digits -= 1
        if not self._digits:
            self._step = self._string
        return at + 1

    def _literal(self, text: str, at: int) -> int:
        found = _TOKEN.match(text, at)
        end = found.end() if found else at
        self._token.append(text[at:end])
        if end < len(text):
            token = "".join(self._token)
            self._token.clear()
            if not _LITERAL.fullmatch(token):
                return self._break(end)
            self._end_value()
        return end

    def _shut(self, at: int) -> int:
        self._open.pop()
        self._end_value()
        return at + 1

    def _end_string(self) -> None:
        if not self._is_key:
            self._end_value()
            return
        self._step = self._colon
        if len(self._open) == 1:
            self.signal = Signal.KEY

    def _end_value(self) -> None:
        self._step = self._after
        if not self._open:
            self.signal = Signal.END
        elif len(self._open) == 1:
            self.signal = Signal.VALUE_END

    def _repair(self, written: str) -> None:
        self.repaired = written
        self.signal = Signal.REPAIRED

    def _break(self, at: int) -> int:
        self.signal = Signal.BROKEN
        return at


def skip(text: str, at: int) -> int:
    """Returns the cursor after the blanks."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _escaped(character: str) -> str:
    return _ESCAPES.get(character) or f"u{ord(character):04x}"


def repaired_value(text: str) -> str | None:
    """Returns the text as one JSON value, with invalid characters in strings escaped; None when it is none."""
    # Nearly all of it is valid, and a strict decoder finds that in a fraction of the time.
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _scanned_value(text)
    return text.strip(BLANKS)


def _scanned_value(text: str) -> str | None:
    # The blank ends a number that ends the text.
    text = f"{text} "
    scanner, pieces, at = JsonScanner(), list[str](), 0
    while at < len(text) and scanner.signal not in (Signal.BROKEN, Signal.END):
        begin, at = at, scanner.scan(text, at)
        repaired = scanner.signal is Signal.REPAIRED
        pieces.append(text[begin : at - 1] + scanner.repaired if repaired else text[begin:at])
    whole = scanner.signal is Signal.END and not text[at:].strip(BLANKS)
    return "".join(pieces).strip(BLANKS) if whole else None


def repaired_object(text: str) -> str | None:
    """Returns the text as one JSON object, as `repaired_value` does; None also for any other value."""
    value = repaired_value(text)
    return value if value is not None and value.startswith("{") else None
