"""Finds where each effective setting comes from: the command line, the environment, a line of the file, a default."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.policy import Policy
from gateway.settings.compression import MODEL_COMPRESS_KEYS
from gateway.settings.hidden import shown_value
from gateway.settings.line_numbers import key_lines
from gateway.settings.model_entry import LIMITS, MODEL_KEEPER_KEYS, MODEL_RESPONSES_KEYS
from gateway.settings.policies import ALIASES
from gateway.settings.values import BackendSettings, KeySettings, Settings

DEFAULT: Final = "default"
_SECTIONS: Final = ("server", "limits", "log", "tracing", "inspector", "state", "compress", "responses", "keeper")
_OF_MODELS: Final = {"compress": MODEL_COMPRESS_KEYS, "responses": MODEL_RESPONSES_KEYS, "keeper": MODEL_KEEPER_KEYS}
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
        self._lines = dict(key_lines(file.text))

    def all(self) -> Iterator[EffectiveValue]:
        for key, default in _defaults(Policy).items():
            yield from self._nested(key, [self._written("", key), _Layer(default, DEFAULT)])
        for name in _SECTIONS:
            part = getattr(self._settings, name)
            if part is not None:
                yield from self._fields(name, type(part))
        for name in self._settings.keys:
            yield from self._fields(f"keys.{name}", KeySettings)
        for name in self._members("profiles"):
            for key in self._members(f"profiles.{name}"):
                yield from self._nested(f"profiles.{name}.{key}", [self._written(f"profiles.{name}", key)])
        for name in self._settings.backends:
            yield from self._backend(f"backends.{name}")
        for name in self._settings.models:
            yield from self._model(name)

    def _fields(self, where: str, kind: type[msgspec.Struct]) -> Iterator[EffectiveValue]:
        for key, default in _defaults(kind).items():
            yield from self._nested(f"{where}.{key}", [self._written(where, key), _Layer(default, DEFAULT)])

    def _backend(self, where: str) -> Iterator[EffectiveValue]:
        defaults = {key: value for key, value in _defaults(BackendSettings).items() if key != "options"}
        own = [ALIASES.get(key, key) for key in self._members(where)]
        for key in dict.fromkeys([*defaults, *own]):
            default = defaults.get(key, _MISSING)
            yield from self._nested(f"{where}.{key}", [self._written(where, key), _Layer(default, DEFAULT)])

    def _model(self, name: str) -> Iterator[EffectiveValue]:
        where, entry = f"models.{name}", self._settings.models[name]
        for key, default in (("backend", _MISSING), ("name", name), ("context_length", None), ("price", None)):
            yield from self._nested(f"{where}.{key}", [self._written(where, key), _Layer(default, DEFAULT)])
        for key, default in _defaults(Policy).items():
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
        for part, keys in _OF_MODELS.items():
            for key, default in _defaults(type(getattr(entry, part))).items():
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
        """Returns what the file says of a key, under its name or an alias; UNSET where it says nothing."""
        entry = self._members(where)
        for name in (key, *(alias for alias, meant in ALIASES.items() if meant == key)):
            if name in entry:
                found = self._at(f"{where}.{name}".lstrip("."), entry[name])
                return found if name == key else found._replace(origin=f"{found.origin} ({name})")
        return _Layer(_MISSING, "")

    def _at(self, path: str, value: Any) -> "_Layer":
        line = self._lines.get(path)  # none for a key that is written with escapes
        return _Layer(value, self._file.name if line is None else f"{self._file.name}:{line}", path)

    def _nested(self, path: str, layers: "list[_Layer]") -> Iterator[EffectiveValue]:
        """Yields the value of a key, or those of the keys below it: an object of the file replaces that of a weaker
        layer as a whole, and its absent keys have their defaults."""
        outside = self._overrides.get(path)
        first = [] if outside is None else [_Layer(outside.value, outside.origin)]
        layers = [layer for layer in [*first, *layers] if layer.value is not _MISSING]
        if not layers:
            return
        strongest, last = layers[0], layers[-1]
        if not isinstance(last.value, msgspec.Struct):
            over = tuple(Origin(shown_value(path, layer.value), layer.origin) for layer in layers[1:])
            yield EffectiveValue(path, shown_value(path, strongest.value), strongest.origin, over)
            return
        written = {} if strongest is last else strongest.value
        for key in last.value.__struct_fields__:
            own = [self._at(f"{strongest.path}.{key}", written[key])] if key in written else []
            yield from self._nested(f"{path}.{key}", [*own, _Layer(getattr(last.value, key), DEFAULT)])


class _Layer(NamedTuple):
    """A value, its origin, and its path in the file where it is from there. (Any: JSON, a Struct or UNSET.)"""

    value: Any
    origin: str
    path: str = ""


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Returns the default of each key; UNSET for one without. (Any: JSON, a Struct or UNSET.)"""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
        found[field.name] = _MISSING if default is msgspec.NODEFAULT else default
    if kind is Policy:
        found["profile"] = "none"
    return found
