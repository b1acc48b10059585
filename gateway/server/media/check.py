"""Checks what the settings of pictures and documents need beside the settings: a package, and a backend that takes
pictures."""

import importlib.util
from collections.abc import Iterator, Mapping

from gateway.adapter import Adapter
from gateway.core.errors import SettingsError
from gateway.settings import Settings
from gateway.settings.model_names import ModelNames


def uses_media(settings: Settings) -> bool:
    """Returns whether pictures or PDFs are read for any model."""
    policies = [entry.policy for entry in settings.models.values()]
    return any(policy.images == "describe" or policy.documents is not None for policy in policies)


def media_faults(settings: Settings, adapters: Mapping[str, Adapter]) -> Iterator[SettingsError]:
    """Yields an error for each thing that is missing. `adapters` are those of the backends, as far as they can be
    loaded."""
    seeing = None if settings.vision.model is None else ModelNames(settings.models).find(settings.vision.model)
    adapter = None if seeing is None else adapters.get(seeing.backend)
    if adapter is not None and not _takes_pictures(adapter):
        name = settings.backends[seeing.backend].adapter if seeing is not None else ""
        yield SettingsError(f"vision.model: the backend of {settings.vision.model!r} ({name}) takes no pictures")
    reading = [name for name, entry in settings.models.items() if entry.policy.documents is not None]
    if reading and (lack := _lack()) is not None:
        where = "documents" if settings.policy.documents is not None else f"models.{reading[0]}.documents"
        yield SettingsError(f"{where} is text, which needs {lack}")


def _takes_pictures(adapter: Adapter) -> bool:
    return adapter.capabilities.images and "user" in adapter.capabilities.image_roles


def _lack() -> str | None:
    if importlib.util.find_spec("pypdf") is None:
        return 'a package that is not installed: pip install "dragoman[documents]"'
    return None if importlib.util.find_spec("resource") is not None else "a POSIX system: it limits a process"
