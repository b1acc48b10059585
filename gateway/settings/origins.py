"""Finds where each effective setting comes from: the command line, the environment, a line of the file, a default."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.model_facts import ModelFacts
from gateway.core.policy import Policy
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.settings.flat_values import MODEL_PARTS, SECTIONS, default_name, defaults_of, flat_values
from gateway.settings.hidden import shown_value
from gateway.settings.line_numbers import key_lines
from gateway.settings.model_entry import LIMITS
from gateway.settings.policies import ALIASES
from gateway.settings.values import BackendSettings, KeySettings, Price, RefreshCredential, Settings

DEFAULT: Final = "default"
# What an object is at a key whose default is null.
_OPTIONAL: Final[Mapping[str, type[msgspec.Struct]]] = {"refresh": RefreshCredential, "price": Price}
_MISSING: Final = msgspec.UNSET


class Origin(msgspec.Struct, frozen=True):
    """A value, and what sets it: `settings.json:14`, `--port`, `DRAGOMAN_PORT`, `default`."""

    value: Any  # JSON
    origin: str


class EffectiveValue(msgspec.Struct, frozen=True):
    """The effective value of the key at a path, and what it overrides, the next one first."""

    path: str
    value: Any  # JSON
    origin: str
    over: tuple[Origin, ...] = ()


class OriginalFile(msgspec.Struct, frozen=True):
    """A settings file: its name, its text, and the same decoded."""

    name: str
    text: str
    raw: JsonObject


def effective_values(
    file: OriginalFile, settings: Settings, overrides: Mapping[str, Origin], native: frozenset[str]
) -> tuple[EffectiveValue, ...]:
    """Returns every setting. `settings` are those of the file, `overrides` the values from outside by their path, and
    `native` names the backends whose adapter is native: the limits of the top level are not theirs. Values that may be
    secrets are hidden."""
    return tuple(_Origins(file, settings, overrides, native).all())


class _Origins:
    def __init__(
        self, file: OriginalFile, settings: Settings, overrides: Mapping[str, Origin], native: frozenset[str]
    ) -> None:
        self._file = file
        self._settings = settings
        self._overrides = overrides
        self._native = native
        self._values = flat_values(settings.on(native))
        self._lines = dict(key_lines(file.text))

    def all(self) -> Iterator[EffectiveValue]:
        for key, default in defaults_of(Policy).items():
            yield from self._nested(key, [self._written("", key), _Layer(default, DEFAULT)])
        for name in SECTIONS:
            part = getattr(self._settings, name)
            if part is None:
                yield EffectiveValue(name, None, DEFAULT)
            else:
                yield from self._fields(name, type(part))
        for name in self._settings.keys:
            yield from self._fields(f"keys.{name}", KeySettings)
        yield from self._profiles()
        for name in self._settings.backends:
            yield from self._backend(f"backends.{name}")
        for name in self._settings.models:
            yield from self._model(name)

    def _fields(self, where: str, kind: type[msgspec.Struct]) -> Iterator[EffectiveValue]:
        for key, default in defaults_of(kind).items():
            yield from self._nested(f"{where}.{key}", [self._written(where, key), _Layer(default, DEFAULT)])

    def _profiles(self) -> Iterator[EffectiveValue]:
        """A profile has what its base is by then: one that the file defines, or replaces, above it."""
        known = dict(PROFILES)
        for name in self._members("profiles"):
            base = self._members(f"profiles.{name}").get("base", "none")
            for key in Profile.__struct_fields__:
                inherited = _Layer(getattr(known[str(base)], key), f"profile {base}")
                yield from self._nested(f"profiles.{name}.{key}", [self._written(f"profiles.{name}", key), inherited])
            known[name] = self._settings.profiles[name]

    def _backend(self, where: str) -> Iterator[EffectiveValue]:
        defaults = {key: value for key, value in defaults_of(BackendSettings).items() if key != "options"}
        own = [ALIASES.get(key, key) for key in self._members(where)]
        for key in dict.fromkeys([*defaults, *own]):
            layers = [self._written(where, key), _Layer(defaults.get(key, _MISSING), DEFAULT)]
            yield from self._nested(f"{where}.{key}", layers, _OPTIONAL.get(key))

    def _model(self, name: str) -> Iterator[EffectiveValue]:
        where, entry = f"models.{name}", self._settings.models[name]
        for key, default in (
            ("backend", _MISSING),
            ("name", default_name(name)),
            ("context_length", None),
            ("price", None),
            ("candidates", []),
            ("longer", None),
        ):
            layers = [self._written(where, key), _Layer(default, DEFAULT)]
            yield from self._nested(f"{where}.{key}", layers, _OPTIONAL.get(key))
        for key in ModelFacts.__struct_fields__:
            # What is not known is not listed: most entries say nothing.
            if getattr(entry.facts, key) is not None:
                layers = [self._written(f"{where}.facts", key), _Layer(None, DEFAULT)]
                yield from self._nested(f"{where}.facts.{key}", layers)
        for key, default in defaults_of(Policy).items():
            layers = [self._written(where, key)]
            if key in (*LIMITS, "profile"):
                layers.append(self._written(f"backends.{entry.backend}", key))
            if key in LIMITS and entry.backend in self._native:
                layers.append(_Layer(None, "native backend"))
            else:
                layers.append(self._written("", key))
                if key in LIMITS and entry.compress.enabled:
                    layers.append(_Layer(None, "compress.enabled"))
                layers.append(_Layer(default, DEFAULT))
            yield from self._nested(f"{where}.{key}", layers)
        for part, keys in MODEL_PARTS.items():
            for key, default in defaults_of(type(getattr(entry, part))).items():
                if key in keys:
                    layers = [self._written(f"{where}.{part}", key), self._written(part, key), _Layer(default, DEFAULT)]
                    yield from self._nested(f"{where}.{part}.{key}", layers)

    def _members(self, where: str) -> JsonObject:
        """Returns the object of the file at a place of at most two steps; a name may hold dots."""
        first, _, second = where.partition(".")
        part: Any = self._file.raw.get(first, {}) if first else self._file.raw
        if isinstance(part, dict) and second:
            name, _, below = second.rpartition(".")
            part = part[second] if second in part else _object(part.get(name)).get(below, {})
        return _object(part)

    def _written(self, where: str, key: str) -> "_Layer":
        """Returns the value of a key in the file, under its name or an alias; UNSET where it says nothing."""
        entry = self._members(where)
        for name in (key, *(alias for alias, meant in ALIASES.items() if meant == key)):
            if name in entry:
                found = self._at(f"{where}.{name}".lstrip("."), entry[name])
                return found if name == key else found._replace(origin=f"{found.origin} ({name})")
        return _Layer(_MISSING, "")

    def _at(self, path: str, value: Any) -> "_Layer":
        line = self._lines.get(path)  # none for a key that is written with escapes
        return _Layer(value, self._file.name if line is None else f"{self._file.name}:{line}", path)

    def _nested(
        self, path: str, layers: "list[_Layer]", optional: type[msgspec.Struct] | None = None
    ) -> Iterator[EffectiveValue]:
        """Yields the value of a key, or those of the keys below it: an object of the file replaces that of a weaker
        layer as a whole, and its absent keys have their defaults. `optional`: what an object at this key is, where the
        default is none."""
        outside = self._overrides.get(path)
        first = [] if outside is None else [_Layer(outside.value, outside.origin)]
        layers = [layer for layer in [*first, *layers] if layer.value is not _MISSING]
        if not layers:
            return
        strongest, last = layers[0], layers[-1]
        kind = type(last.value) if isinstance(last.value, msgspec.Struct) else optional
        if kind is None or not isinstance(strongest.value, msgspec.Struct | dict):
            over = tuple(Origin(shown_value(path, layer.value), layer.origin) for layer in layers[1:])
            # What the file says, with the defaults of what it leaves out in an object with names of its own.
            used = strongest.value if outside is not None else self._values.get(path, strongest.value)
            yield EffectiveValue(path, shown_value(path, used), strongest.origin, over)
        elif isinstance(strongest.value, msgspec.Struct):
            for key in strongest.value.__struct_fields__:
                yield from self._nested(f"{path}.{key}", [_Layer(getattr(strongest.value, key), strongest.origin)])
        else:
            for key, default in defaults_of(kind).items():
                own = [self._at(f"{strongest.path}.{key}", strongest.value[key])] if key in strongest.value else []
                yield from self._nested(f"{path}.{key}", [*own, _Layer(default, DEFAULT)])


class _Layer(NamedTuple):
    """A value, its origin, and its path in the file where it is from there. (Any: JSON, a Struct or UNSET.)"""

    value: Any
    origin: str
    path: str = ""


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
