"""Decides which changed settings apply while the gateway runs, and which need a restart."""

from collections.abc import Iterator, Mapping
from typing import Final, get_type_hints

import msgspec

from gateway.settings import (
    RESTART,
    InspectorSettings,
    KeeperSettings,
    LimitSettings,
    LogSettings,
    ResponsesSettings,
    ServerSettings,
    Settings,
    StateSettings,
    TracingSettings,
)


def restart_only(part: type[msgspec.Struct]) -> tuple[str, ...]:
    """Returns the settings of a part that are marked with `RESTART`."""
    hints = get_type_hints(part, include_extras=True)
    return tuple(
        field.name
        for field in msgspec.structs.fields(part)
        if RESTART in getattr(hints[field.name], "__metadata__", ())
    )


RESTART_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "server": restart_only(ServerSettings),
    "limits": restart_only(LimitSettings),
    "log": restart_only(LogSettings),
    "inspector": restart_only(InspectorSettings),
    "state": restart_only(StateSettings),
    "responses": restart_only(ResponsesSettings),
    "keeper": restart_only(KeeperSettings),
}


def keep_restart_only(used: Settings, wanted: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Returns the wanted settings, with the old values of those that cannot change; and the names of these."""
    kept: list[str] = []
    parts: dict[str, msgspec.Struct | None] = {}
    for part, names in RESTART_ONLY.items():
        before, after = getattr(used, part), getattr(wanted, part)
        stay = {name: getattr(before, name) for name in names if getattr(before, name) != getattr(after, name)}
        parts[part] = msgspec.structs.replace(after, **stay)
        kept += (f"{part}.{name}" for name in stay)
    parts["tracing"] = _keep_tracing(used.tracing, wanted.tracing)
    if parts["tracing"] != wanted.tracing:
        kept.append("tracing")
    return msgspec.structs.replace(wanted, **parts), tuple(kept)


def _keep_tracing(used: TracingSettings | None, wanted: TracingSettings | None) -> TracingSettings | None:
    """Keeps whether traces are on, and what of them is marked; the rest may change."""
    if used is None or wanted is None:
        return used
    stay = {name: getattr(used, name) for name in restart_only(TracingSettings)}
    return msgspec.structs.replace(wanted, **stay)


def changed(before: Settings, after: Settings) -> Iterator[str]:
    """Lists the parts of settings.json that differ."""
    return (name for name in Settings.__struct_fields__ if getattr(before, name) != getattr(after, name))
