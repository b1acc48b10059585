"""What may happen to a store's file: each function does it, and may return what ends it."""

import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

Undo: TypeAlias = Callable[[], None] | None


def overwrite(path: Path) -> None:
    """As a faulty disk or another program may do."""
    for file in path.parent.iterdir():
        file.write_bytes(b"\x00\xffspoilt" * 4096)


def damage_pages(path: Path) -> None:
    """All behind the first page, which says whose the file is."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


def cut_short(path: Path) -> None:
    os.truncate(path, 5000)


def cut_off(path: Path) -> None:
    for file in path.parent.iterdir():
        os.truncate(file, 0)


def remove(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()


def remove_alone(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    """By a file of another program."""
    remove(path)
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE mine (what TEXT)")
    foreign.close()


def fill(path: Path) -> Undo:
    """No file of this process may grow any more, nor be written to: what a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def lock(path: Path) -> Undo:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other.close


# What the next operations recover from by themselves, perhaps after some failures; all contents may be gone.
RECOVERED: Final[dict[str, Callable[[Path], Undo]]] = {
    "overwritten": overwrite,
    "damaged pages": damage_pages,
    "cut short": cut_short,
    "cut off": cut_off,
    "removed": remove,
    "removed without its journal": remove_alone,
}
# What lasts until it is undone.
LASTING: Final[dict[str, Callable[[Path], Undo]]] = {
    "locked": lock,
    "full disk": fill,
    "replaced": replace,
}
