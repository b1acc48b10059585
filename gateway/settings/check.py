"""Checks one part of settings.json and converts it to its value; raises SettingsError with the name of the key."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import Correction, SettingsError
from gateway.core.wrong_value import TYPE_WORDS, in_words, read_wrong_value

S = TypeVar("S", bound=msgspec.Struct)

# This number of names stays readable in one line.
MOST_LISTED: Final = 40
# Of two names, as difflib counts it: half of their letters are also those of names that have nothing in common.
_NEAR: Final = 0.6
_LONGEST: Final = 200
# The names that every shell and every system can set.
VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
ADDRESS: Final = r"^https?://[^/]"
# RFC 9110, section 11.1: a token. Registered ones are short, most keys are long; empty: no scheme.
SCHEME: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}$"
_PATTERNS: Final[Mapping[str, str]] = {
    SCHEME: "must be the name of a scheme, such as Bearer, Api-Key or Basic, and not the key; empty for none",
    VARIABLE: "must be the name of an environment variable, not its value: letters, digits and _",
    ADDRESS: "must begin with http:// or https:// and name a host",
}
_BOUNDS: Final[Mapping[str, str]] = {
    ">=": "of {} or more",
    ">": "greater than {}",
    "<=": "of at most {}",
    "<": "less than {}",
}
# A person who writes settings knows no arrays.
_WORDS: Final = {**TYPE_WORDS, "array": "a list"}


def read_struct(raw: Json, kind: type[S], where: str) -> S:
    """Returns the object at `where` as a value. Raises SettingsError, like all here, with the full path of the key."""
    entry = read_object(raw, where)
    check_shape(entry, kind, where)
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        path, reason = wrong_value(error, entry)
        place = f"{where}{path}" if path.startswith("[") else path_of(where, path)
        spoken = reason.startswith(("must ", "is "))
        raise fault(place, f"{place}{' ' if spoken else ': '}{reason}" if place else reason) from error


def wrong_value(error: msgspec.ValidationError, entry: Json) -> tuple[str, str]:
    """Returns the path of the wrong value in the entry that was converted, empty for the entry itself, and what is
    wrong with it. Of the value only a number is shown: a text may be a secret."""
    wrong = read_wrong_value(error)
    path = wrong.path
    if wrong.missing:
        return path_of(path, wrong.missing), "is missing"
    if wrong.expected:
        return path, f"must be {in_words(wrong.expected, _WORDS)}; it is {in_words((wrong.found,), _WORDS)}"
    if wrong.bound is not None:
        kind, sign, number = wrong.bound
        return path, f"must be {_WORDS[kind]} {_BOUNDS[sign].format(number.removesuffix('.0'))}{_shown(entry, path)}"
    return path, _PATTERNS.get(wrong.pattern, wrong.reason)


def _shown(entry: Json, path: str) -> str:
    value = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return f"; it is {value}" if isinstance(value, int | float) else ""


def check_shape(value: Json, kind: Any, where: str) -> None:
    """Refuses unknown names, words that are not allowed, and floats like 10.0 where an integer belongs, at any depth.

    A person reads 10.0 as a float, though decoders would accept it. The decoder reports any other error of the value. A
    type may declare by `msgspec.Meta(extra={"keys_of": STRUCT, "besides": NAMES})` the keys of an object that its
    annotation leaves open. (kind: Any, since it is any annotation.)
    """
    if (check := _GENERIC.get(get_origin(kind))) is not None:
        check(value, get_args(kind), where)
    elif kind is int and isinstance(value, float):
        raise fault(where, f"{where} must be a whole number; it is {value}")
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        _check_fields(value, kind, where)


def _check_annotated(value: Json, parts: tuple[Any, ...], where: str) -> None:
    kind, *metas = parts
    for meta in metas:
        extra = (meta.extra or {}) if isinstance(meta, msgspec.Meta) else {}
        if isinstance(value, dict) and "keys_of" in extra:
            _check_fields(value, extra["keys_of"], where, extra.get("besides", ()))
    check_shape(value, kind, where)


def _check_union(value: Json, parts: tuple[Any, ...], where: str) -> None:
    if value is None or (isinstance(value, str) and str in parts):
        return
    for part in parts:
        check_shape(value, part, where)


def _check_word(value: Json, words: tuple[Any, ...], where: str) -> None:
    if value not in words:
        raise fault(where, f"{where} must be one of {_listed(words)}; it is {value!r}")


def _check_mapping(value: Json, parts: tuple[Any, ...], where: str) -> None:
    if isinstance(value, dict):
        for key, below in value.items():
            check_shape(below, parts[1], path_of(where, key))


def _check_items(value: Json, parts: tuple[Any, ...], where: str) -> None:
    if isinstance(value, list):
        for position, below in enumerate(value):
            check_shape(below, parts[0], f"{where}[{position}]")


_GENERIC: Final[Mapping[Any, Callable[[Json, tuple[Any, ...], str], None]]] = {
    Annotated: _check_annotated,
    Union: _check_union,
    UnionType: _check_union,
    Literal: _check_word,
    Mapping: _check_mapping,
    tuple: _check_items,
}


def _check_fields(entry: JsonObject, kind: type[msgspec.Struct], where: str, besides: Iterable[str] = ()) -> None:
    check_keys(entry, (*kind.__struct_fields__, *besides), where)
    for field in msgspec.structs.fields(kind):
        if field.name in entry:
            check_shape(entry[field.name], field.type, path_of(where, field.name))


def check_keys(entry: JsonObject, known: Iterable[str], where: str) -> None:
    """Refuses an unknown key, and names the known key that was probably meant."""
    for key in entry:
        if key not in known:
            place = path_of(where, key)
            raise unknown_name(place, f"unknown setting {place!r}", key, known)


def unknown_name(place: str, reason: str, name: str, known: Iterable[str]) -> SettingsError:
    """Returns the error about a name that does not exist, at a place or of its key, with the nearest one that does."""
    names = list(known)
    error = fault(place, f"{reason}{nearest(name, names)}")
    near = similar(name, names)
    error.correction = None if near is None else Correction(name, near)
    return error


def fault(place: str, message: str) -> SettingsError:
    """Returns the error about the value at a place."""
    error = SettingsError(message)
    error.place = place
    return error


def check_not_negative(part: msgspec.Struct, where: str) -> None:
    """Refuses a limit below zero."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, int) and value < 0:
            raise SettingsError(f"{path_of(where, name)} must be a whole number of 0 or more; it is {value}")


def check_pattern(pattern: str, where: str) -> None:
    """Refuses text that is no regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        place = f" from character {error.pos + 1} on" if error.pos is not None else ""
        raise SettingsError(f"{where}: {pattern!r} cannot be read as a regular expression{place}") from error
    except OverflowError as error:
        raise SettingsError(f"{where}: {pattern!r} has a repetition that is too large") from error


def read_object(raw: Json, where: str) -> dict[str, Json]:
    """Returns the JSON object at `where`."""
    if not isinstance(raw, dict):
        raise SettingsError(f"{where or 'settings'} must be an object")
    return raw


def path_of(where: str, name: str) -> str:
    """Returns the readable path of a key: `backends.local.wire`."""
    return ".".join(part for part in (where, name) if part)


def nearest(key: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence about an unknown name: the most similar known one, or all of them."""
    names = list(known)
    if (near := similar(key, names)) is not None:
        return f"; did you mean {near!r}?"
    return f"; there are {_listed(names)}" if names else ""


def similar(key: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is near to this one, as a slip of the hand is; None where none is."""
    found = difflib.get_close_matches(key[:_LONGEST], list(known), n=1, cutoff=_NEAR)
    return found[0] if found else None


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(map(repr, names[:MOST_LISTED])) + (f" and {more} more" if more > 0 else "")
