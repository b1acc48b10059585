"""Reads the sentence of msgspec about a value that does not fit its type, and names types in plain words.

msgspec writes ``Expected `int | null`, got `str` - at `$.max_tokens` `` and the like; the sentences are no part of its
documented API, so that no other module reads them. Clients of every dialect and authors of settings get their own
sentence, from the same parts.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

# The types of msgspec's sentences.
TYPE_WORDS: Final[Mapping[str, str]] = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_MISSING: Final = re.compile(r"Object missing required field `([^`]+)`")
_TYPE: Final = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND: Final = re.compile(r"Expected `(int|float)` ([<>]=?) (\S+)")
# With an apostrophe in it, a pattern stands between double quotes.
_PATTERN: Final = re.compile(r"Expected `str` matching regex (['\"])(.+)\1")


class WrongValue(msgspec.Struct, frozen=True):
    """`path` is that of the value below the one that was converted, as `a.b[0]`, empty for that one itself, and
    `reason` is msgspec's sentence without it. Of the others, one is set where the sentence is of its kind: the
    `missing` field, the `expected` types and the one that was `found`, the `bound` as type, sign and number, or the
    `pattern`."""

    path: str
    reason: str
    missing: str = ""
    expected: tuple[str, ...] = ()
    found: str = ""
    bound: tuple[str, str, str] | None = None
    pattern: str = ""


def read_wrong_value(error: msgspec.ValidationError) -> WrongValue:
    """Returns the parts of an error of `msgspec.convert` or a decoder."""
    reason, _, path = str(error).partition(" - at `$")
    path = path.rstrip("`").removeprefix(".")
    if found := _MISSING.fullmatch(reason):
        return WrongValue(path, reason, missing=found[1])
    if found := _TYPE.fullmatch(reason):
        return WrongValue(path, reason, expected=tuple(found[1].split(" | ")), found=found[2])
    if found := _BOUND.fullmatch(reason):
        return WrongValue(path, reason, bound=(found[1], found[2], found[3]))
    if found := _PATTERN.fullmatch(reason):
        return WrongValue(path, reason, pattern=found[2])
    return WrongValue(path, reason)


def in_words(types: Iterable[str], words: Mapping[str, str] = TYPE_WORDS) -> str:
    """Returns types as `text or null`; one without a word stands as it is."""
    return " or ".join(words.get(name, name) for name in types)
