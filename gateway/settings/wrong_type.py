"""Rewrites what msgspec says of a wrong value in the words of a person."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.core.conversation import Json

_WORDS: Final[Mapping[str, str]] = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS: Final[Mapping[str, str]] = {
    ">=": "of {} or more",
    ">": "greater than {}",
    "<=": "of at most {}",
    "<": "less than {}",
}
# The names that every shell and every system can set.
VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
ADDRESS: Final = r"^https?://[^/]"
_PATTERNS: Final[Mapping[str, str]] = {
    VARIABLE: "must be the name of an environment variable, not its value: letters, digits and _",
    ADDRESS: "must begin with http:// or https:// and name a host",
}
_TYPE: Final = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND: Final = re.compile(r"Expected `(int|float)` ([<>]=?) (\S+)")
_PATTERN: Final = re.compile(r"Expected `str` matching regex '(.+)'")
_MISSING: Final = re.compile(r"Object missing required field `([^`]+)`")


def wrong_type(said: str, entry: Json) -> tuple[str, str]:
    """Returns the path of the wrong value in the entry that was converted, empty for the entry itself, and what is
    wrong with it. Of the value only a number is shown: a text may be a secret."""
    reason, _, path = said.partition(" - at `$")
    path = path.rstrip("`").removeprefix(".")
    if found := _MISSING.fullmatch(reason):
        return ".".join(part for part in (path, found[1]) if part), "is missing"
    if found := _TYPE.fullmatch(reason):
        return path, f"must be {_listed(found[1])}; it is {_listed(found[2])}"
    if found := _BOUND.fullmatch(reason):
        bound = _BOUNDS[found[2]].format(found[3].removesuffix(".0"))
        return path, f"must be {_WORDS[found[1]]} {bound}{_shown(entry, path)}"
    if (found := _PATTERN.fullmatch(reason)) and found[1] in _PATTERNS:
        return path, _PATTERNS[found[1]]
    return path, reason


def _listed(types: str) -> str:
    return " or ".join(_WORDS.get(name, name) for name in types.split(" | "))


def _shown(entry: Json, path: str) -> str:
    value = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return f"; it is {value}" if isinstance(value, int | float) else ""
