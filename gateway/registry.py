"""Loads adapters by name: built in, by import string, or as an entry point of an installed package."""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from gateway.adapter import Adapter
from gateway.core.errors import SettingsError
from gateway.settings import BackendSettings, Settings, check_options, nearest

# The built-in adapters, by the names that settings may use.
ADAPTERS: Final[Mapping[str, str]] = {
    "openai_chat": "adapters.openai_chat:OpenAIChatAdapter",
    "text": "adapters.text:TextAdapter",
    "warp": "adapters.warp:WarpAdapter",
}
# Entry points of this group name adapters of other packages. A built-in name wins over an entry point.
ADAPTER_GROUP: Final = "dragoman.adapters"


def load_adapter(name: str, settings: BackendSettings, max_event: int) -> Adapter:
    """Returns the adapter of one backend entry, with the entry's own options checked. `max_event` is in bytes.

    Raises SettingsError for an unknown name, for a class that cannot be imported, and for wrong options.
    """
    where = f"backends.{name}"
    kind = _adapter_class(where, settings.adapter)
    if not hasattr(kind, "Options"):
        raise SettingsError(f"{where}.adapter: {settings.adapter!r} is not an adapter")
    return cast(Adapter, kind(check_options(settings.options, kind.Options, where), max_event))


def load_adapters(settings: Settings) -> dict[str, Adapter]:
    """Returns the adapter of each backend entry. Raises SettingsError."""
    max_event = int(settings.limits.max_event_mb * 2**20)
    return {name: load_adapter(name, entry, max_event) for name, entry in settings.backends.items()}


def _adapter_class(where: str, adapter: str) -> type:
    module, _, attribute = ADAPTERS.get(adapter, adapter).partition(":")
    if module and attribute:
        return _imported(where, adapter, EntryPoint(attribute, f"{module}:{attribute}", ADAPTER_GROUP))
    installed = {point.name: point for point in entry_points(group=ADAPTER_GROUP)}
    if adapter in installed:
        return _imported(where, adapter, installed[adapter])
    raise SettingsError(
        f"{where}.adapter: there is no adapter {adapter!r} (your own must be written module:Class)"
        f"{nearest(adapter, [*ADAPTERS, *installed])}"
    )


def _imported(where: str, adapter: str, point: EntryPoint) -> type:
    try:
        found = importlib.import_module(point.module)
    except (ImportError, SyntaxError) as error:
        raise SettingsError(f"{where}.adapter: {adapter!r} cannot be imported: {error}") from error
    try:
        return cast(type, getattr(found, point.attr))
    except AttributeError as error:
        raise SettingsError(f"{where}.adapter: there is no {point.attr!r} in {point.module!r}") from error
