"""One part of settings.json as its value, or the SettingsError that names the key."""

import difflib
import re
from collections.abc import Iterable
from types import UnionType
from typing import TypeVar, get_args

import msgspec

from gateway.errors import SettingsError
from gateway.types import Json, JsonObject

S = TypeVar("S", bound=msgspec.Struct)


def read_struct(raw: Json, kind: type[S], where: str) -> S:
    """The object at `where` as a value. Raises SettingsError, like all here, with the full path of the key."""
    entry = read_object(raw, where)
    _check_fields(entry, kind, where)
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise SettingsError(f"{path_of(where, path.rstrip('`').lstrip('.'))}: {reason}") from error


def _check_fields(entry: JsonObject, kind: type[msgspec.Struct], where: str) -> None:
    """Unknown names, here and below; and 10.0, a float to whoever reads the file, though decoders would take it."""
    check_keys(entry, kind.__struct_fields__, where)
    for field in msgspec.structs.fields(kind):
        value = entry.get(field.name)
        below = path_of(where, field.name)
        if isinstance(value, float) and field.type in (int, int | None):
            raise SettingsError(f"{below} must be a whole number; it is {value}")
        for part in get_args(field.type) if isinstance(field.type, UnionType) else (field.type,):
            if isinstance(value, dict) and isinstance(part, type) and issubclass(part, msgspec.Struct):
                _check_fields(value, part, below)


def check_keys(entry: JsonObject, known: Iterable[str], where: str) -> None:
    """Refuse an unknown key, and name the known one that was probably meant."""
    for key in entry:
        if key not in known:
            raise SettingsError(f"unknown setting {path_of(where, key)!r}{nearest(key, known)}")


def check_not_negative(part: msgspec.Struct, where: str) -> None:
    """Refuse a limit below zero."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, int) and value < 0:
            raise SettingsError(f"{path_of(where, name)} must be a whole number of 0 or more; it is {value}")


def check_pattern(pattern: str, where: str) -> None:
    """Refuse what is no regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"{where}: {pattern!r} is no regular expression: {error}") from error


def read_object(raw: Json, where: str) -> dict[str, Json]:
    """The JSON object at `where`."""
    if not isinstance(raw, dict):
        raise SettingsError(f"{where or 'settings'} must be an object")
    return raw


def path_of(where: str, name: str) -> str:
    """How a person finds a key: `backends.local.wire`."""
    return ".".join(part for part in (where, name) if part)


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the known one that is most like it, if one is."""
    matches = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""
