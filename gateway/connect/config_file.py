"""Changes a file of a client, keeps what it was, and restores that.

Copies stand beside it: `.bak` is what the file was (`.none`: there was no file), `.new` what was written. Their names
have the digest of what was written: a file that nobody has changed since is restored, from another one what was written
is taken out. Changes are undone one after the other.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gateway.connect.client import ClientFile
from gateway.connect.formats import FORMATS, Format, plain
from gateway.connect.merge import merge, remove, take_out
from gateway.connect.target import Target
from gateway.core.errors import SettingsError

_VARIABLE: Final = re.compile(r"\$(\w+)")


class Change(msgspec.Struct, frozen=True):
    """A file as it is (None: there is none) and as it will be, and the paths of the values that are replaced."""

    path: Path
    before: bytes | None
    after: bytes
    replaced: tuple[str, ...]


def locate(file: ClientFile, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Returns the path of a client's file. Raises SettingsError where nothing tells a home folder."""
    folders = file.folders_macos if platform == "darwin" and file.folders_macos else file.folders
    for folder in folders:
        if all(environ.get(name) for name in _VARIABLE.findall(folder)):
            found = Path(_VARIABLE.sub(lambda name: environ[name[1]], folder), file.name)
            try:
                return found.expanduser()
            except RuntimeError as error:
                raise SettingsError(f"{found}: there is no home folder") from error
    raise SettingsError(f"{file.name}: none of its folders is known ({', '.join(folders)})")


def text_of(file: ClientFile, target: Target) -> str:
    """Returns the text of a new file for this gateway."""
    return FORMATS[Path(file.name).suffix].write(_content(file, target, {}), "")


def _content(file: ClientFile, target: Target, existing: Any) -> Any:
    """Returns the keys that a file must hold, with the defaults of keys that it lacks. (Any: JSON.)"""
    content = target.fill_tree(file.content)
    missing = {key: value for key, value in file.defaults.items() if key not in existing}
    return {**missing, **content} if missing else content


def plan_change(path: Path, file: ClientFile, target: Target) -> Change:
    """Returns the change that lets a file hold what the client needs, besides what it has. Raises SettingsError, with
    the line, for a file that cannot be read or does not fit."""
    before = _read(path)
    try:
        return _merged(path, before, file, target)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.message}. Nothing was changed") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: it is nested too deep. Nothing was changed") from error


def _merged(path: Path, before: bytes | None, file: ClientFile, target: Target) -> Change:
    form = FORMATS[path.suffix]
    text = _decode(before or b"")
    if not text.strip():
        return Change(path, before, text_of(file, target).encode(), ())
    tree = form.read(text)
    replaced: tuple[str, ...] = ()
    if tree is None:
        # Comments alone, as in the sample files of many clients: they stay above what is added.
        tree = _content(file, target, {})
        written = f"{text.rstrip()}\n\n{text_of(file, target)}"
    else:
        was = plain(tree)
        merged = merge(tree, _content(file, target, tree))
        replaced = (*merged, *(path for one in file.removed for path in remove(tree, one)))
        if before is not None and plain(tree) == was:
            return Change(path, before, before, ())
        written = form.write(tree, text)
    if plain(form.read(written)) != plain(tree):
        raise SettingsError("it is written in a way that cannot be kept")
    return Change(path, before, _encode(written, before or b""), replaced)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error


def _encode(text: str, before: bytes) -> bytes:
    """Returns the bytes of a text, with the line ends of what was there before."""
    try:
        return text.replace("\n", "\r\n" if b"\r\n" in before else "\n").encode()
    except UnicodeEncodeError as error:
        raise SettingsError("it has characters that UTF-8 does not have") from error


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SettingsError("it is not UTF-8") from error


def apply(change: Change) -> Path | None:
    """Writes a change and returns the path of the copy of what was there; None where nothing changes. Raises
    SettingsError."""
    if change.before == change.after:
        return None
    # Where it is a link, what it leads to is changed.
    path = change.path.resolve()
    stem = _stem(path, change.after)
    backup = stem.with_suffix(".none" if change.before is None else ".bak")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # An older copy under this name is of the same text: undoing leads to what was before both.
        if not backup.exists():
            _write(backup, change.before or b"", path)
        _write(stem.with_suffix(".new"), change.after, path)
        _write(path, change.after, path)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written: {error.strerror}") from error
    return backup


Undone: TypeAlias = Literal["restored", "removed", "taken out"]


def undo(path: Path) -> Undone:
    """Restores what a file was before the latest change, or removes it where there was none. From a file that somebody
    has changed since, it takes out what was written. Raises SettingsError where nothing is to be undone, or where the
    changed file cannot be read."""
    path = path.resolve()
    data = _read(path)
    exact = _stem(path, data or b"")
    try:
        if data is not None and (exact.with_suffix(".bak").exists() or exact.with_suffix(".none").exists()):
            return _restore(path, exact)
        latest = max(path.parent.glob(f"{path.name}.dragoman-*.new"), key=_time, default=None)
        if data is not None and latest is not None:
            return _take_out(path, data, latest)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be restored: {error.strerror}") from error
    raise SettingsError(f"{path}: there is nothing to undo.{_copies(path, 'It was changed since; ')}")


def _restore(path: Path, stem: Path) -> Undone:
    stem.with_suffix(".new").unlink(missing_ok=True)
    backup, none = stem.with_suffix(".bak"), stem.with_suffix(".none")
    if backup.exists():
        os.replace(backup, path)
        return "restored"
    path.unlink()
    none.unlink()
    return "removed"


def _take_out(path: Path, data: bytes, new: Path) -> Undone:
    backup, none = new.with_suffix(".bak"), new.with_suffix(".none")
    before = backup.read_bytes() if backup.exists() else b""
    form = FORMATS[path.suffix]
    try:
        text = _decode(data)
        tree = form.read(text)
        written = plain(form.read(_decode(new.read_bytes())))
        if not isinstance(tree, dict if isinstance(written, dict) else list):
            raise SettingsError("it has another form than what was written")
        take_out(tree, written, plain(_tree(form, before)))
        after = _encode(form.write(tree, text), data)
    except (SettingsError, RecursionError) as error:
        reason = error.message if isinstance(error, SettingsError) else "it is nested too deep"
        raise SettingsError(f"{path}: {reason}. Nothing was changed.{_copies(path)}") from error
    if tree or backup.exists():
        _write(path, after, path)
    else:
        path.unlink()
    for copy in (new, backup, none):
        copy.unlink(missing_ok=True)
    return "taken out" if path.exists() else "removed"


def _tree(form: Format, data: bytes) -> Any:
    """Returns the content of a file, an empty object where it has none. (Any: JSON.)"""
    text = _decode(data)
    return (form.read(text) if text.strip() else None) or {}


def _copies(path: Path, why: str = "") -> str:
    copies = sorted(each.name for each in path.parent.glob(f"{path.name}.dragoman-*.bak"))
    return f" {why}copy back by hand what you need of {', '.join(copies)}." if copies else ""


def _time(path: Path) -> int:
    return path.stat().st_mtime_ns


def _stem(path: Path, written: bytes) -> Path:
    """Returns the path of the copies for a file with this content; a suffix is to be put in the place of its own."""
    digest = hashlib.sha256(written).hexdigest()[:12]
    return path.with_name(f"{path.name}.dragoman-{digest}.bak")


def _write(path: Path, data: bytes, like: Path) -> None:
    """Writes a file as a whole or not at all, with the mode of the one that it replaces or copies."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if like.exists():
            shutil.copymode(like, name)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
