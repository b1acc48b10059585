"""Checks the files and folders that the settings name and the gateway writes. Nothing is made."""

import os
from collections.abc import Iterator
from pathlib import Path

from gateway.core.errors import SettingsError
from gateway.server.state.state_folder import file_fault, folder_fault
from gateway.settings import Settings
from gateway.settings.descriptor_files import reflection_cache


def place_errors(settings: Settings) -> Iterator[SettingsError]:
    """Yields what the start refuses: a folder for recordings that cannot be made."""
    folder = settings.inspector.record
    if folder is not None and not os.path.isdir(folder) and (fault := folder_fault(Path(folder))):
        yield SettingsError(f"inspector.record: {folder} cannot be made: {fault}")


def place_warnings(settings: Settings) -> Iterator[str]:
    """Yields a sentence for each place where nothing can be written, and without which the gateway starts."""
    kind, _, store = (settings.state.store or "").partition(":")
    files = {"log.file": settings.log.file, "state.store": store if kind == "sqlite" else None}
    for name, entry in settings.backends.items():
        files[f"backends.{name}.refresh.store"] = None if entry.refresh is None else entry.refresh.store
        cache = reflection_cache(entry)
        files[f"backends.{name}.schema.cache"] = None if cache is None else str(cache)
    for place, file in files.items():
        if file and (fault := file_fault(Path(file))):
            yield f"{place}: {file}: {fault}"
    record = settings.inspector.record
    if record is not None and os.path.isdir(record) and (fault := folder_fault(Path(record))):
        yield f"inspector.record: {fault}"
