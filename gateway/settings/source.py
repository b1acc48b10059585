"""Names the source of the settings, and tells when it was changed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from gateway.settings import Settings

Stamp: TypeAlias = tuple[tuple[int, int, int], ...] | None


class SettingsSource:
    """The source of the settings: a file, and the function that reads it (with the overrides of the command line)."""

    def __init__(self, path: Path, load: Callable[[], Settings]) -> None:
        self.path = path
        self.load = load

    def stamp(self, keys: str | None) -> Stamp:
        """Returns a value that changes when the file, or the one with the keys, is written. None while one of them is
        missing: it is being replaced."""
        try:
            found = [os.stat(path) for path in (self.path, keys) if path is not None]
        except OSError:
            return None
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)
