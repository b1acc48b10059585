"""Decides which changed settings apply while the gateway runs, and which need a restart."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from gateway.settings import Settings, TracingSettings

# Settings that are bound, opened or passed to uvicorn at the start.
RESTART_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "server": (
        "host",
        "port",
        "workers",
        "rate_limit_file",
        "reload",
        "max_connections",
        "header_timeout_s",
        "graceful_shutdown_timeout_s",
    ),
    "limits": ("max_response_mb",),
    "log": ("file", "max_mb", "backups"),
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
    """Keeps whether traces are on, their destination and their service name; only the sampled share may change."""
    if used is None or wanted is None:
        return used
    return msgspec.structs.replace(used, sample=wanted.sample)


def changed(before: Settings, after: Settings) -> Iterator[str]:
    """Lists the parts of settings.json that differ."""
    return (name for name in Settings.__struct_fields__ if getattr(before, name) != getattr(after, name))
