"""Finds every fault of a settings file, where reading it reports the first one.

A misspelt key is corrected, another faulty value is left out or replaced by a sound one, and the file is read again. A
fault that only follows from what was replaced is not reported.
"""

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.settings.line_numbers import begins
from gateway.settings.read import read_settings
from gateway.settings.values import Settings

# Each fault costs one reading of the whole file.
MOST: Final = 100
# These stand in for keys that an entry must have.
_SOUND_BACKEND: Final = {"adapter": "any", "base_url": "http://localhost"}
_SOUND: Final[Mapping[str, JsonObject]] = {"backends": _SOUND_BACKEND, "models": {"context_length": 1}}
_WORD: Final = re.compile(r"[.:]? ?(\w+)")
_ABSENT: Final = re.compile(r"there is no (backend|model|profile) '(.+?)'(?:;|$)")

_Path = tuple[str, ...]


class Faults(msgspec.Struct, frozen=True):
    """The settings of the file besides its faults, the faults, and the backends of which no adapter is known. The
    settings are the defaults where a fault leaves nothing to read, or there are too many."""

    settings: Settings
    errors: tuple[SettingsError, ...]
    without_adapter: frozenset[str]


def settings_faults(raw: Json) -> Faults:
    """Returns every fault of decoded JSON, up to 100 and the first one behind which nothing can be read."""
    repair = _Repair(raw)
    while True:
        try:
            settings = read_settings(repair.raw)
        except SettingsError as error:
            if not repair.add(error):
                return Faults(Settings(), (*repair.errors, error), frozenset())
        else:
            return Faults(settings, tuple(repair.errors), frozenset(repair.without_adapter))


class _Repair:
    def __init__(self, raw: Json) -> None:
        self.raw: Any = copy.deepcopy(raw)  # Any: JSON
        self.errors: list[SettingsError] = []
        self.without_adapter: set[str] = set()
        self._replaced: set[_Path] = set()

    def add(self, error: SettingsError) -> bool:
        """Takes a fault, and changes the value so that the next one is found. Returns False where that is impossible:
        for a fault without a place, and beyond the last one that is looked for."""
        path = self._place(error.message)
        if path is None or len(self.errors) == MOST:
            return False
        if not self._follows(path, error.message):
            self.errors.append(error)
        self._mend(path, error)
        return True

    def _place(self, message: str) -> _Path | None:
        about = message.removeprefix("unknown setting '")
        found = [path for path in _paths(self.raw) if begins(about, ".".join(path))]
        return max(found, key=lambda path: len(".".join(path)), default=None)

    def _follows(self, path: _Path, message: str) -> bool:
        absent = _ABSENT.search(message)
        missing = message.removesuffix(" is missing")
        return (
            any(missing == ".".join(one) for one in self._replaced)
            or path in self._replaced
            or (
                absent is not None and not {(f"{absent[1]}s",), (f"{absent[1]}s", absent[2])}.isdisjoint(self._replaced)
            )
        )

    def _mend(self, path: _Path, error: SettingsError) -> None:
        holder, key = self._holder(path), path[-1]
        value = holder[key]
        if error.correction is not None and error.place == ".".join(path):
            right = error.correction.nearest
            holder.setdefault(right, value)
            del holder[key]
        elif isinstance(value, dict) and path not in self._replaced:
            self._mend_object(path, value, error.message)
        elif isinstance(value, list) and (absent := _ABSENT.search(error.message)) and absent[2] in value:
            value.remove(absent[2])
        elif len(path) == 3 and path[::2] == ("models", "backend"):
            self._replace(path[:2])
        else:
            self._replace(path)

    def _mend_object(self, path: _Path, value: dict[str, Json], message: str) -> None:
        """Mends an object of which a key is missing, or of which a rule of its type names a key."""
        named = _WORD.match(message[len(".".join(path)) :])
        word = named[1] if named else ""
        needed = _SOUND.get(path[0], {}) if len(path) == 2 else {}
        if word in needed and word not in value:
            value[word] = needed[word]
            self.without_adapter |= {path[1]} if word == "adapter" else set()
        elif word in value:
            del value[word]
            self._replaced.add(path)
        else:
            self._replace(path)

    def _replace(self, path: _Path) -> None:
        """Replaces an entry with a name by a sound one, since other entries may name it; leaves out another value."""
        holder, key = self._holder(path), path[-1]
        again = path in self._replaced
        self._replaced.add(path)
        if len(path) == 2 and path[0] == "profiles" and not again:
            holder[key] = {}
        elif len(path) == 2 and path[0] == "backends" and not again:
            holder[key] = dict(_SOUND_BACKEND)
            self.without_adapter.add(key)
        elif len(path) == 2 and path[0] == "models" and self.raw.get("backends") and not again:
            holder[key] = {**_members(holder[key]), "backend": next(iter(self.raw["backends"]))}
        else:
            del holder[key]

    def _holder(self, path: _Path) -> dict[str, Any]:
        holder: dict[str, Any] = self.raw
        for key in path[:-1]:
            holder = holder[key]
        return holder


def _members(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _paths(raw: Json, above: _Path = ()) -> list[_Path]:
    """Returns the path of every key of an object, and of those below it; those in lists are part of the list."""
    found: list[_Path] = []
    for key, value in _members(raw).items():
        found += [(*above, key), *_paths(value, (*above, key))]
    return found
