"""The folder of this machine with what the gateway needs of its own: the key that it seals with, and when the clients'
sealed values were last forgotten.

The folder is `$STATE_DIRECTORY` (which systemd sets), else `$XDG_STATE_HOME/dragoman`, else `~/.local/state/dragoman`.
"""

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.state.sealed_store import SHORTEST_KEY
from gateway.settings import StateSettings

KEY: Final = "state.key"
FORGOTTEN: Final = "forgotten.json"
# Stands for every API key.
EVERYONE: Final = "*"
_KEY_BYTES: Final = 32
_READ: Final = msgspec.json.Decoder(dict[str, float])


class StateFolder:
    """The files of the folder. A folder that cannot be written raises OSError."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.path = _path(environ)
        self._seen: tuple[int, int] | None = None
        self._forgotten: dict[str, float] = {}

    def key(self) -> tuple[str, bool]:
        """Returns the key, and whether it was made now. Of several processes that make one, the first one wins."""
        file = self.path / KEY
        try:
            return file.read_text(encoding="ascii").strip(), False
        except FileNotFoundError:
            pass
        self._make()
        made = file.with_name(f".{KEY}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            _write(made, secrets.token_hex(_KEY_BYTES).encode() + b"\n")
            try:
                # The name appears with the whole content, and never twice.
                os.link(made, file)
            except FileExistsError:
                return file.read_text(encoding="ascii").strip(), False
        finally:
            made.unlink(missing_ok=True)
        return file.read_text(encoding="ascii").strip(), True

    def forget(self, tenant: str, now: float | None = None) -> None:
        """Begins a new epoch of an API key, or of all (`EVERYONE`): what was sealed before is never opened again."""
        self._make()
        when = time.time() if now is None else now
        try:
            forgotten = {**self._read(), tenant: when}
        except OSError:
            # What the file said of others is not known any more.
            forgotten = {EVERYONE: when}
        made = self.path / f".{FORGOTTEN}.{os.getpid()}.{secrets.token_hex(4)}"
        _write(made, msgspec.json.encode(forgotten))
        made.replace(self.path / FORGOTTEN)

    def epoch(self, tenant: str) -> float:
        """Returns when the present epoch of an API key began, in seconds since 1970; 0.0: it is the first one."""
        forgotten = self._read()
        return max(forgotten.get(tenant, 0.0), forgotten.get(EVERYONE, 0.0))

    def _read(self) -> dict[str, float]:
        """Returns the times of the file, which is read again once it has changed. Raises OSError for a file that cannot
        be read: nothing that may be forgotten is opened."""
        file = self.path / FORGOTTEN
        try:
            stat = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            try:
                self._forgotten = _READ.decode(file.read_bytes())
            except msgspec.DecodeError as error:
                raise OSError(f"{file}: {error}") from error
            self._seen = seen
        return self._forgotten

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)


def keys_of(state: StateSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the operator's keys. Raises SettingsError for one that is too short to be random."""
    keys = tuple(key for part in environ.get(state.key_env, "").split(",") if (key := part.strip()))
    if any(len(key) < SHORTEST_KEY for key in keys):
        raise SettingsError(
            f"a key of the state ({state.key_env}) has at least {SHORTEST_KEY} characters, as `openssl rand -hex 32`"
            " prints them"
        )
    return keys


class StateKeys:
    """The keys that seal what clients keep: the operator's, the first of which seals and all of which open, or else the
    one in the folder. Raises SettingsError for a key that is too short."""

    def __init__(self, state: StateSettings, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = StateFolder(environ)
        self._variable = state.key_env
        self._passing = False
        self._keys = keys_of(state, environ)

    def sealing(self) -> tuple[str, ...]:
        """Returns the keys. Where the operator has set none, one is made at the first call, and told."""
        if not self._keys:
            self._keys = (self._own(),)
        return self._keys

    def warn(self) -> None:
        """Warns, once, where something is sealed that nobody opens after a restart."""
        if self._passing:
            self._passing = False
            LOGGER.warning("a compaction was made that cannot be opened after a restart; set %s", self._variable)

    def _own(self) -> str:
        path = self.folder.path
        try:
            key, made = self.folder.key()
        except OSError as error:
            # A gateway may run without a folder, and a request is served all the same.
            told = "no key can be kept in %s (%s): compactions will not be opened after a restart, unless %s is set"
            LOGGER.info(told, path, error.strerror or error, self._variable)
            self._passing = True
            return secrets.token_hex(_KEY_BYTES)
        if made:
            told = "made a key that seals compactions, in %s; several machines need the same one in %s"
            LOGGER.info(told, path, self._variable)
        return key


def _path(environ: Mapping[str, str]) -> Path:
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.partition(":")[0])
    home = environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "dragoman"


def _write(file: Path, data: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as written:
        written.write(data)
        written.flush()
        os.fsync(written.fileno())
