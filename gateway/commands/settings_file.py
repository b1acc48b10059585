"""Changes keys of a settings file, and keeps a copy of the old one."""

import itertools
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.decode import read_text
from gateway.settings.edit import with_keys
from gateway.settings.read import parse_settings

_BOM: Final = "\ufeff"


def write_keys(path: Path, text: str, keys: Mapping[tuple[str, ...], Json], since: str = "in the meantime") -> None:
    """Sets the keys in the file, and changes no other byte of it. `text` is what the keys were found for, and `since`
    says when that was. Raises SettingsError where the file has changed since, or cannot be written."""
    if with_keys(text, keys) == text:
        print(f"{path}: nothing to change.", file=sys.stderr)
        return
    if read_text(path) != text:
        raise SettingsError(f"{path} was changed {since}; it is left as it is: run the command again")
    try:
        # As it is: reading as text would change its line ends.
        changed = with_keys(path.read_bytes().decode(), keys)
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
