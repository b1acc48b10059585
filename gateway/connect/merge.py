"""Adds what a client needs to what its file already holds."""

from collections.abc import Iterator
from typing import Any, Final

from gateway.core.errors import SettingsError

# What tells the entries of a list apart, the first one that both have.
_IDENTITIES: Final = ("name", "id", "model_id")


def merge(existing: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """Changes the existing object or list so that it holds what is wanted, and yields the paths of values that were
    replaced by others. Raises SettingsError where an object, a list or a value stands in the place of another kind.
    (Any: JSON, in the containers of a library.)"""
    if isinstance(wanted, dict) and isinstance(existing, dict):
        for key, value in wanted.items():
            yield from _set(existing, key, value, f"{path}.{key}".lstrip("."))
    elif isinstance(wanted, list) and isinstance(existing, list):
        for item in wanted:
            yield from _add(existing, item, path)
    else:
        raise SettingsError(f"{path or 'the file'} must be {_kind(wanted)}; it is {_kind(existing)}")


def _set(existing: Any, key: str, value: Any, path: str) -> Iterator[str]:
    if key not in existing:
        existing[key] = value
    elif existing[key] is not None and (isinstance(value, dict | list) or isinstance(existing[key], dict | list)):
        yield from merge(existing[key], value, path)
    elif existing[key] != value:
        existing[key] = value
        yield path


def _add(existing: Any, item: Any, path: str) -> Iterator[str]:
    for place, found in enumerate(existing):
        if found == item:
            return
        if isinstance(item, dict) and isinstance(found, dict) and _are_same(found, item):
            yield from merge(found, item, f"{path}[{place}]")
            return
    existing.append(item)


def _are_same(one: Any, other: Any) -> bool:
    for name in _IDENTITIES:
        if name in one and name in other:
            return bool(one[name] == other[name])
    return False


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "a single value"
