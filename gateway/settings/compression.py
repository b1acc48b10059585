"""Checks the settings of compression, which depend on those of the models."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.check import nearest
from gateway.settings.model_names import ModelNames
from gateway.settings.values import CompressSettings, ModelSettings

# A worker has one number of running summaries, whichever models they are of.
MODEL_COMPRESS_KEYS: Final = frozenset(CompressSettings.__struct_fields__) - {"max_running"}


def without_unset_limits(policy: Mapping[str, Json], limits: Iterable[str]) -> dict[str, Json]:
    """Returns policy keys in which a limit that is not set is no limit. A history that a summary keeps short would
    otherwise lose turns before they are summarised."""
    return {**dict.fromkeys(limits), **policy}


def check_compression(models: Mapping[str, ModelSettings]) -> None:
    """Raises SettingsError for a model that writes summaries and does not exist, and where a window is not known: it
    decides when a history is long, and is never guessed."""
    names = ModelNames(models)
    for name, entry in models.items():
        writer = entry.compress.model
        found = None if writer is None else names.find(writer)
        # It also writes the compactions that clients ask for.
        if writer is not None and found is None:
            raise SettingsError(f"compress.model: there is no model {writer!r}{nearest(writer, models)}")
        if not entry.compress.enabled:
            continue
        _check_window(f"models.{name}", entry, "compress is enabled for this model")
        if found is not None:
            _check_window(f"models.{writer}", found, f"compress.model of {name!r} names this model")


def _check_window(where: str, entry: ModelSettings, reason: str) -> None:
    if entry.context_length is None:
        raise SettingsError(f"{where}.context_length is missing: {reason}")


def cut_before_summary(models: Mapping[str, ModelSettings]) -> Iterator[str]:
    """Yields a sentence for each limit of the history that removes turns of a model whose history is summarised, of
    entries as applied to their backends."""
    for name, entry in models.items():
        if entry.compress.enabled:
            for limit in ("max_history_messages", "max_tool_results"):
                if (most := getattr(entry.policy, limit)) is not None:
                    yield f"models.{name}: {limit} is {most}, which removes turns before a summary holds them"
