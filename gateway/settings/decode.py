"""Decodes the text of a settings file: JSON without duplicate keys, and a mistake with its line."""

import json  # not msgspec: it reports the line of a mistake, and start-up is no hot path
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.line_numbers import repeated_key, with_line

_LAST_COMMA: Final = re.compile(r",\s*(?=[}\]])")
# By the first words of the library, of every version from Python 3.11 on. Inside a text, what follows is no JSON.
_TEXT_REASONS: Final[Mapping[str, str]] = {
    "Unterminated string": "this text has no closing double quote",
    "Invalid control character": (
        "a text contains no line end and no other control character: write \\n, \\t or \\u and four digits"
    ),
    "Invalid \\": "JSON does not have this escape: a backslash itself is written \\\\",
}
_REASONS: Final[Mapping[str, str]] = {
    "Expecting value": ("a text in double quotes, a number, true, false, null, an object or an array must stand here"),
    "Expecting property name": "a name in double quotes must stand here",
    "Expecting ':'": "a colon is missing before this",
    "Expecting ','": "a comma or a closing bracket is missing before this",
    "Extra data": "nothing may follow the end of the JSON value",
}


def read_text(path: Path) -> str:
    """Returns the text of a settings file. Raises SettingsError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        advice = "'dragoman init' writes a first settings file, and 'dragoman demo' needs none"
        raise SettingsError(f"{path}: there is no such file; {advice}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{path}: cannot be read: {reason}") from error


def with_place(path: Path, message: str) -> str:
    """A message about a key whose value turned out to be wrong after the file was read, with the file and the line; any
    other message as it is."""
    try:
        located = with_line(read_text(path), message)
    except SettingsError:
        return message
    return message if located == message else f"{path}: {located}"


def decode_settings(text: str) -> Json:
    """Returns the JSON of a settings file. Raises SettingsError for text that is none, or that sets a key twice."""
    try:
        decoded: Json = json.loads(text, object_pairs_hook=_no_duplicates, parse_float=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise SettingsError(json_mistake(error)) from error
    except _SetTwice as error:
        key, line = repeated_key(text)
        raise SettingsError(f"line {line}: the setting {key!r} is set twice in one object") from error
    except RecursionError as error:
        raise SettingsError("it is nested too deep") from error
    except ValueError as error:
        raise SettingsError("it contains a number that is too large") from error
    return decoded


def json_mistake(error: json.JSONDecodeError) -> str:
    """Returns `line 3, column 1: ...` with what is wrong there. The words of the library are never in it: they differ
    between versions of Python."""
    text, position = error.doc, error.pos
    # From Python 3.13 on, the position of a comma too many is that of the comma.
    comma = _LAST_COMMA.match(text, position)
    if comma is not None:
        position = comma.end()
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return f"line {line}, column {column}: {_reason(error.msg, text[:position].rstrip(), text[position:].lstrip())}"


def _reason(library: str, before: str, rest: str) -> str:
    for words, reason in _TEXT_REASONS.items():
        if library.startswith(words):
            return reason
    if not before and not rest:
        return "the file is empty: remove it, and 'dragoman init' writes a new one"
    if not rest:
        return "the file ends here, before each { and [ is closed"
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments: remove this one"
    if rest.startswith("'"):
        return "JSON has texts in double quotes only"
    if rest[0] in "}]" and before.endswith(","):
        return f"remove the comma before this {rest[0]}"
    if rest.startswith('"') and library.startswith("Expecting ','"):
        return "a comma is missing before this"
    return next((reason for words, reason in _REASONS.items() if library.startswith(words)), "this is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise SettingsError(f"{text} is not a number a setting can have")
    return value


class _SetTwice(Exception):
    """A key is set twice in one object."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        raise _SetTwice
    return entry
