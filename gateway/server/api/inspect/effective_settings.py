"""Lists every setting in use and what sets it, for the inspector's page: a line of the file, an option, a default."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.core.errors import SettingsError
from gateway.registry import native_backends
from gateway.server.api.gateway_state import GatewayState
from gateway.settings import Settings, parse_settings, with_place
from gateway.settings.decode import decode_settings, read_text
from gateway.settings.flat_values import flat_values
from gateway.settings.origins import DEFAULT, EffectiveValue, Origin, OriginalFile, effective_values
from gateway.settings.source import SettingsSource

OPTION: Final = "an option or a variable"
NO_FILE: Final = "the program"
REFUSED: Final = "the file as it was before, an option or a variable"
WAITS: Final = "the file has another value, which waits for a restart"
NOT_READ: Final = "the file has another value, which is not read yet, or refused: the log says why"


class SettingRow(msgspec.Struct, frozen=True):
    """A setting in use. `origin` is what sets it, `over` what it overrides, and `file` the other value that the file
    has now, if `differs`. (Any: JSON.)"""

    path: str
    value: Any
    origin: str
    over: tuple[Origin, ...] = ()
    differs: bool = False
    file: Any = None


class SettingsView(msgspec.Struct, frozen=True):
    """All settings in use. `file` is the name of their file, empty where there is none, and `fault` what is wrong with
    it now."""

    file: str
    fault: str
    rows: tuple[SettingRow, ...]


class _File(msgspec.Struct, frozen=True):
    """What the file says now: the values that the start would use, and those of the file with where they come from."""

    wanted: Mapping[str, Any]
    origins: Mapping[str, EffectiveValue]


def settings_view(state: GatewayState) -> SettingsView:
    """Returns the settings in use by this process. It reads the file."""
    native = native_backends(state.backends.adapters)
    source, running = state.source, flat_values(state.settings.on(native))
    if source is None:
        return SettingsView("", "", tuple(_rows_without_file(running, NO_FILE)))
    try:
        found = _read(source, native)
    except SettingsError as error:
        fault = with_place(source.path, error.message)
        return SettingsView(source.path.name, fault, tuple(_rows_without_file(running, REFUSED)))
    return SettingsView(source.path.name, "", tuple(_rows(running, found, state.waiting)))


def _read(source: SettingsSource, native: frozenset[str]) -> _File:
    """Raises SettingsError."""
    text = read_text(source.path)
    settings, raw = parse_settings(text), decode_settings(text)
    file = OriginalFile(source.path.name, text, raw if isinstance(raw, dict) else {})
    origins = {one.path: one for one in effective_values(file, settings, {}, native)}
    return _File(flat_values(source.load().on(native)), origins)


def _rows_without_file(running: Mapping[str, Any], origin: str) -> Iterator[SettingRow]:
    """Yields the rows where no file says what sets a value; `origin` does of those that are no defaults."""
    defaults = flat_values(Settings())
    for path, value in running.items():
        yield SettingRow(path, value, DEFAULT if defaults.get(path) == value else origin)


def _rows(running: Mapping[str, Any], found: _File, waiting: tuple[str, ...]) -> Iterator[SettingRow]:
    for path, value in running.items():
        wanted, origin = found.wanted.get(path), found.origins.get(path)
        if wanted != value:
            waits = any(f"{path}.".startswith(f"{one}.") for one in waiting)
            yield SettingRow(path, value, WAITS if waits else NOT_READ, (), True, wanted)
        elif origin is None or origin.value != value:
            yield SettingRow(path, value, OPTION, _over(origin))
        else:
            yield SettingRow(path, value, origin.origin, origin.over)


def _over(overridden: EffectiveValue | None) -> tuple[Origin, ...]:
    return () if overridden is None else (Origin(overridden.value, overridden.origin), *overridden.over)
