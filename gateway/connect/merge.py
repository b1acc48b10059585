"""Adds what a client needs to what its file already holds, and takes it out again."""

from collections.abc import Iterator
from typing import Any, Final

from gateway.connect.formats import plain
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
        if _are_both_same(found, item):
            yield from merge(found, item, f"{path}[{place}]")
            return
    existing.append(item)


def remove(existing: Any, path: str) -> Iterator[str]:
    """Removes the key at a path of objects, and yields the path where there was one. (Any: as above.)"""
    *above, key = path.split(".")
    for name in above:
        existing = existing.get(name) if isinstance(existing, dict) else None
    if isinstance(existing, dict) and key in existing:
        del existing[key]
        yield path


def take_out(existing: Any, after: Any, before: Any) -> None:
    """Changes the existing object or list so that what `merge` and `remove` changed in it, from `before` to `after`, is
    as before. What somebody has added or changed since stays. (Any: JSON, `existing` in a library's containers.)"""
    if isinstance(after, dict) and isinstance(existing, dict):
        for key, value in after.items():
            if key in existing and not (key in before and before[key] == value):
                _take_out_value(existing, key, value, before)
        for key in before:
            if key not in after and key not in existing:
                existing[key] = before[key]
    elif isinstance(after, list) and isinstance(existing, list):
        for item in after:
            if item not in before:
                _take_out_item(existing, item, before)


def _take_out_value(existing: Any, key: str, value: Any, before: Any) -> None:
    found, old = existing[key], before.get(key)
    if isinstance(found, dict | list):
        # What was there before stays in its place, with its comments.
        same = isinstance(old, type(value))
        take_out(found, value, old if same else type(value)())
        if same or found:
            return
    elif found != value:
        return
    if key in before:
        existing[key] = old
    else:
        del existing[key]


def _take_out_item(existing: Any, item: Any, before: Any) -> None:
    old = next((one for one in before if _are_both_same(one, item)), None)
    for place, found in enumerate(existing):
        if old is None and plain(found) == item:
            del existing[place]
            return
        if _are_both_same(found, item):
            take_out(found, item, old or {})
            return


def _are_both_same(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and _are_same(one, other)


def _are_same(one: Any, other: Any) -> bool:
    for name in _IDENTITIES:
        if name in one and name in other:
            return bool(one[name] == other[name])
    return False


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "a single value"
