"""Writes what `dragoman doctor` suggests into the settings file, and keeps what the file was."""

import itertools
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.core.errors import SettingsError

if TYPE_CHECKING:
    from gateway.diagnostics.doctor.finding import Report

_BOM: Final = "\ufeff"


def write_suggestions(path: Path, text: str, report: "Report") -> None:
    """Sets the suggested keys in the file, and changes no other byte of it. `text` is what the report is about. Raises
    SettingsError where the file has changed since, or cannot be written."""
    from gateway.commands.doctor_text import suggested_text
    from gateway.settings.decode import read_text
    from gateway.settings.read import parse_settings

    if suggested_text(text, report) == text:
        print(f"{path}: nothing to change.", file=sys.stderr)
        return
    if read_text(path) != text:
        raise SettingsError(f"{path} was changed while the backends were asked; it is left as it is: run doctor again")
    try:
        # As it is: reading as text would change its line ends.
        changed = suggested_text(path.read_bytes().decode(), report)
        parse_settings(changed.removeprefix(_BOM))
        kept = _free_name(path)
        # The copy may be read by nobody who may not read the file.
        shutil.copy2(path, kept)
        path.write_bytes(changed.encode())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written: {error.strerror}") from error
    print(f"{path} is changed; the old one is {kept.name}.", file=sys.stderr)


def _free_name(path: Path) -> Path:
    """Returns the first of FILE.bak, FILE.bak.1, FILE.bak.2 that does not exist."""
    names = (f"{path.name}.bak{f'.{number}' if number else ''}" for number in itertools.count())
    return next(free for name in names if not (free := path.with_name(name)).exists())
