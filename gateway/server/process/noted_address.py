"""Notes in the state folder of this machine where a gateway was started last: an option or a variable may have chosen
another port than the settings name. Nobody relies on it: whoever reads it asks what answers there."""

import contextlib
import os
from pathlib import Path
from typing import Final

from gateway.connect.target import read_address
from gateway.core.errors import SettingsError

FILE: Final = "address"
_MOST_BYTES: Final = 300


def note_address(folder: Path, address: str) -> None:
    """Notes the address of a gateway that accepts requests. A folder that cannot be written keeps no note."""
    made = folder / f".{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        made.write_text(f"{address}\n", encoding="ascii")
        made.replace(folder / FILE)


def noted_address(folder: Path) -> str | None:
    """Returns the address; None where none was noted."""
    try:
        with (folder / FILE).open("rb") as file:
            return read_address(file.read(_MOST_BYTES).decode("ascii").strip())
    except (OSError, UnicodeDecodeError, SettingsError):
        return None
