"""Loads adapters and dialects by name: built in, by import string, or as an entry point of an installed package."""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

import msgspec

from gateway.adapter import Adapter
from gateway.core.errors import OptionError, SettingsError
from gateway.dialect import Dialect
from gateway.dialects.route_table import RouteTable
from gateway.settings import BackendSettings, Settings, check_options, nearest
from gateway.settings.check import unknown_name

# The built-in adapters, by the names that settings may use.
ADAPTERS: Final[Mapping[str, str]] = {
    "anthropic_messages": "adapters.anthropic_messages.backend:AnthropicMessagesAdapter",
    "gemini": "adapters.gemini.backend:GeminiAdapter",
    "openai_chat": "adapters.openai_chat.backend:OpenAIChatAdapter",
    "openai_responses": "adapters.openai_responses.backend:OpenAIResponsesAdapter",
    "proto": "adapters.proto.backend:ProtoAdapter",
    "text": "adapters.text.backend:TextAdapter",
    "warp": "adapters.warp.backend:WarpAdapter",
}
# Entry points of this group name adapters of other packages. A built-in name wins over an entry point.
ADAPTER_GROUP: Final = "dragoman.adapters"
# The same for dialects: all of them are served, built in and installed.
DIALECTS: Final[Mapping[str, str]] = {
    "openai_chat": "adapters.openai_chat.client.dialect:OpenAIChatDialect",
    "ollama": "adapters.ollama.client.dialect:OllamaDialect",
    "openai_responses": "adapters.openai_responses.client.dialect:OpenAIResponsesDialect",
    "anthropic_messages": "adapters.anthropic_messages.client.dialect:AnthropicMessagesDialect",
    "openai_completions": "adapters.openai_completions.client.dialect:OpenAICompletionsDialect",
    "gemini": "adapters.gemini.client.dialect:GeminiDialect",
    "gemini_interactions": "adapters.gemini_interactions.client.dialect:GeminiInteractionsDialect",
}
DIALECT_GROUP: Final = "dragoman.dialects"
# The dialect in which errors are written that precede any route, and of requests that name none.
DEFAULT_DIALECT: Final = "openai_chat"


class Named(msgspec.Struct, frozen=True):
    """A name of an adapter or dialect: `value` is its import string, `package` the installed package that gives the
    name, with its version, or "" for a built-in one. Without `used`, the name is a built-in one, and means that."""

    name: str
    value: str
    package: str
    used: bool


def named_adapters() -> list[Named]:
    """Returns the names that settings.json may use, built-in ones first. Imports none of them. Raises SettingsError."""
    return _named(ADAPTERS, ADAPTER_GROUP)


def named_dialects() -> list[Named]:
    """Returns the names of the dialects, built-in ones first. Imports none of them. Raises SettingsError."""
    return _named(DIALECTS, DIALECT_GROUP)


def load_adapter(name: str, settings: BackendSettings, max_event: int) -> Adapter:
    """Returns the adapter of one backend entry, with the entry's own options checked. `max_event` is in bytes.

    Raises SettingsError for an unknown name, for a class that cannot be imported, and for wrong options.
    """
    where = f"backends.{name}"
    kind = _adapter_class(f"{where}.adapter", settings.adapter)
    if not hasattr(kind, "Options"):
        raise SettingsError(f"{where}.adapter: {settings.adapter!r} is not an adapter")
    options = check_options(settings.options, kind.Options, where)
    try:
        return cast(Adapter, kind(options, max_event))
    except OptionError as error:
        located = OptionError(f"{where}.{error.message}")
        located.place = f"{where}.{error.place}" if error.place else ""
        located.correction = error.correction
        located.governs = f"{where}.{error.governs}" if error.governs else ""
        raise located from error


def adapter_signs(where: str, adapter: str) -> bool:
    """Returns whether the adapter that the setting at `where` names signs its requests (`SigningAdapter`).

    Raises SettingsError for an unknown name, and for a class that cannot be imported.
    """
    return hasattr(_adapter_class(where, adapter), "sign")


def load_adapters(settings: Settings) -> dict[str, Adapter]:
    """Returns the adapter of each backend entry. Raises SettingsError."""
    max_event = int(settings.limits.max_event_mb * 2**20)
    return {name: load_adapter(name, entry, max_event) for name, entry in settings.backends.items()}


def native_backends(adapters: Mapping[str, Adapter]) -> frozenset[str]:
    """Returns the names of the backends whose adapter is native: the limits of the top level are not theirs."""
    return frozenset(name for name, adapter in adapters.items() if adapter.capabilities.native)


def load_dialects() -> RouteTable:
    """Returns the routes of all dialects: the built-in ones, and those of installed packages.

    Raises SettingsError for a dialect that cannot be imported, and for two with the same route.
    """
    names = dict.fromkeys([DEFAULT_DIALECT, *DIALECTS, *_installed(DIALECT_GROUP)])
    return RouteTable([load_dialect(name) for name in names])


def load_dialect(name: str | None = None) -> Dialect:
    """Returns the dialect of this name; None: the default one. Raises SettingsError for an unknown name, and for a
    dialect that cannot be imported."""
    name = DEFAULT_DIALECT if name is None else name
    known = {key: _built_in(written, DIALECT_GROUP) for key, written in DIALECTS.items()}
    if name not in known:
        known = {**_installed(DIALECT_GROUP), **known}
    if name not in known:
        raise SettingsError(f"there is no dialect {name!r}{nearest(name, known)}")
    point = known[name]
    where = f"the dialect {name!r}" + (f" of the package {point.dist.name}" if point.dist else "")
    found = _imported(where, point.value, point)
    if getattr(found, "name", None) != name:
        raise SettingsError(f"{where}: {point.value!r} is not a dialect of this name")
    return cast(Dialect, found())


def _named(built_in: Mapping[str, str], group: str) -> list[Named]:
    installed = [
        Named(name, point.value, _package(point), name not in built_in) for name, point in _installed(group).items()
    ]
    return [*(Named(name, value, "", True) for name, value in built_in.items()), *installed]


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else ""


def _adapter_class(where: str, adapter: str) -> type:
    written = ADAPTERS.get(adapter, adapter)
    if all(written.partition(":")):
        return _imported(where, adapter, _built_in(written, ADAPTER_GROUP))
    installed = _installed(ADAPTER_GROUP)
    if adapter in installed:
        return _imported(where, adapter, installed[adapter])
    reason = f"{where}: there is no adapter {adapter!r} (a class is written module:Class)"
    raise unknown_name(where, reason, adapter, [*ADAPTERS, *installed])


def _built_in(written: str, group: str) -> EntryPoint:
    return EntryPoint(written.rpartition(":")[2], written, group)


def _installed(group: str) -> dict[str, EntryPoint]:
    """Returns the entry points by name. Raises SettingsError for a name that means two things."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise SettingsError(
                f"two installed packages name {point.name!r} in {group}: {other.value!r} and {point.value!r}; "
                "uninstall one of them"
            )
    return found


def _imported(where: str, written: str, point: EntryPoint) -> type:
    try:
        found = importlib.import_module(point.module)
    except Exception as error:  # the module may be of another package: whatever it raises is reported by name
        raise SettingsError(f"{where}: {written!r} cannot be imported: {error}") from error
    try:
        return cast(type, getattr(found, point.attr))
    except AttributeError as error:
        raise SettingsError(f"{where}: there is no {point.attr!r} in {point.module!r}") from error
