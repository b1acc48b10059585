"""Finds every fault of a backend's entry, where its adapter reports the first one.

A name that does not exist is corrected to the nearest one, another faulty value is left out, and the entry is checked
again. A fault that only follows from what was left out, or from the name that a template's was taken for, is not
reported.
"""

import copy
import re
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import Correction, OptionError, SettingsError
from gateway.registry import load_adapter
from gateway.settings import BackendSettings

# Each correction costs one check of the whole entry.
MOST: Final = 100
# With it the name of a template begins, of which a place has one.
_NAME: Final = "$"
_NESTED: Final = re.compile(r"[.\[]")
_POSITION: Final = re.compile(r"\[(\d+)\]")


def entry_faults(name: str, entry: BackendSettings, max_event: int) -> tuple[str, ...]:
    """Returns the message of every fault, with its place and the nearest name; empty for an entry that can be used."""
    found: list[str] = []
    removed: list[str] = []
    governed: list[str] = []
    guessed: set[str] = set()
    options: dict[str, Json] = copy.deepcopy(dict(entry.options))
    while len(found) < MOST:
        try:
            load_adapter(name, msgspec.structs.replace(entry, options=options), max_event)
        except SettingsError as error:
            place = error.place.removeprefix(f"backends.{name}").removeprefix(".")
            if place not in guessed and not _follows(error, place, removed, governed):
                found.append(error.message)
                if error.correction is not None and place == "adapter":
                    entry = msgspec.structs.replace(entry, adapter=error.correction.nearest)
                    continue
                if error.correction is not None and _correct(options, place, error.correction):
                    if error.correction.written.startswith(_NAME):
                        guessed.add(place)
                    continue
            elif not _NESTED.search(place):
                break
            if not _remove(options, place):
                break
            removed.append(place)
            if isinstance(error, OptionError) and error.governs:
                governed.append(error.governs.removeprefix(f"backends.{name}."))
        else:
            break
    return tuple(found)


def _follows(error: SettingsError, place: str, removed: list[str], governed: list[str]) -> bool:
    """Whether a fault may follow from what was removed: it is of what encloses a removed value, or of an object whose
    values are read by a removed one, or the adapter compares a whole part with others."""
    if any(place.startswith(f"{one}.") for one in governed):
        return True
    compares = isinstance(error, OptionError) and not _NESTED.search(place)
    return bool(removed) and (compares or any(one.startswith(place) for one in removed))


def _correct(options: dict[str, Json], place: str, correction: Correction) -> bool:
    """Replaces a name in the value at a place, in a key or an item of this value, or in the place's own key."""
    holder, step = _holder(options, place)
    written, nearest = correction
    # A name of a template begins with `$`: `prompt` is no part of `$prompt`.
    name = re.compile(rf"(?<![\w$]){re.escape(written)}(?!\w)")
    match holder[step] if _has(holder, step) else None:
        case str() as text if name.search(text):
            holder[step] = name.sub(lambda _: nearest, text)
        case dict() as below if written in below and nearest not in below:
            below[nearest] = below.pop(written)
        case list() as items if written in items:
            items[items.index(written)] = nearest
        case None:
            return False
        case _:
            renamed = name.sub(lambda _: nearest, str(step))
            if not isinstance(holder, dict) or renamed in holder:
                return False
            value = holder.pop(step)
            # Any other key of the entry is no option of the adapter.
            if holder is not options or renamed not in BackendSettings.__struct_fields__:
                holder[renamed] = value
    return True


def _remove(options: dict[str, Json], place: str) -> bool:
    holder, step = _holder(options, place)
    if not _has(holder, step):
        return False
    del holder[step]
    return True


def _holder(options: dict[str, Json], place: str) -> tuple[Any, str | int]:
    """Returns the object or the list that has the value at a place, and its key or position there; an empty key for a
    place that does not exist. A key may have dots, such as that of a condition. (Any: JSON.)"""
    holder: Any = options
    rest = place
    while (step := _step(holder, rest)) is not None:
        key, rest = step
        if not rest:
            return holder, key
        holder = holder[key]
    return {}, ""


def _step(holder: Any, place: str) -> tuple[str | int, str] | None:
    """Returns the key of a holder with which a place begins, and what follows it."""
    if isinstance(holder, list):
        position = _POSITION.match(place)
        return (int(position[1]), place[position.end() :]) if position and int(position[1]) < len(holder) else None
    if not isinstance(holder, dict):
        return None
    place = place.removeprefix(".")
    keys = [key for key in holder if place == key or place.startswith((f"{key}.", f"{key}["))]
    return (found := max(keys, key=len), place[len(found) :]) if keys else None


def _has(holder: Any, step: str | int) -> bool:
    return isinstance(holder, list) or step in holder
