"""Names the source of the settings, and tells when it was changed."""

import os
from collections.abc import Callable, Iterable
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
        return stamp_of([self.path, keys] if keys is not None else [self.path])


def stamp_of(paths: Iterable[Path | str]) -> Stamp:
    """Returns a value that changes when one of the files is written or replaced, also behind a symbolic link; None
    while one is missing."""
    try:
        found = [os.stat(path) for path in paths]
    except (OSError, ValueError):  # no file has NUL in its path
        return None
    return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)
