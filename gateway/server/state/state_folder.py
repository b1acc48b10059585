"""The folder of this machine with what the gateway needs of its own: the key that it seals with, and when the clients'
sealed values were last forgotten.

The folder is the one that `state.folder` names, else `$STATE_DIRECTORY` (which systemd sets), else
`$XDG_STATE_HOME/dragoman`, else `~/.local/state/dragoman`. The start of a gateway makes it; a command changes only one
that is there. Whoever writes in it leaves the files to the user of the service, and holds a lock on the folder.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.state.sealed_store import SHORTEST_KEY
from gateway.server.state.store import EVERYONE
from gateway.settings import StateSettings

try:
    import fcntl
except ModuleNotFoundError:  # on Windows, where links and names of files are all there is
    LOCKS = False
else:
    LOCKS = True

KEY: Final = "state.key"
FORGOTTEN: Final = "forgotten.json"
# How long the lock may be held by others, who need it for milliseconds.
PATIENCE_S = 5.0
_KEY_BYTES: Final = 32
_KEY_TEXT: Final = re.compile(rb"[0-9a-f]{64}\r?\n?")
# A volume may give its group every file (`fsGroup` of a pod); anyone else is nobody's choice.
_OTHERS: Final = 0o007
# Not blocked by a pipe.
_READING: Final = os.O_RDONLY | os.O_NONBLOCK if LOCKS else os.O_RDONLY
_READ: Final = msgspec.json.Decoder(dict[str, float])


class StateFolder:
    """The files of the folder, which `named` names where it is given. A folder that cannot be used raises OSError."""

    def __init__(self, environ: Mapping[str, str] = os.environ, named: str | None = None) -> None:
        self.path = Path(named) if named else _path(environ)
        # Somebody has chosen it; else it is in the home, which a container has only while it runs.
        self.chosen = bool(named or environ.get("STATE_DIRECTORY"))
        self._seen: tuple[int, int] | None = None
        self._forgotten: dict[str, float] = {}
        self._learnt: dict[str, float] = {}

    def begin(self) -> None:
        """Makes the folder, where it does not exist."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def fault(self) -> str:
        """Returns why no key can be kept in the folder; empty: there is one, or one can be made. Makes nothing."""
        return "" if os.path.exists(self.path / KEY) else folder_fault(self.path)

    def key(self) -> tuple[str, bool]:
        """Returns the key, and whether it was made now. Of several processes that make one, the first one wins. Raises
        SettingsError for a file that holds no key, or one that others may read."""
        found = self.read_key()
        if found is not None:
            return found, False
        self.begin()
        with self._locked():
            made = self.read_key() is None
            if made:
                self._publish(KEY, secrets.token_hex(_KEY_BYTES).encode() + b"\n")
        found = self.read_key()
        if found is None:
            raise OSError(errno.ENOENT, f"{KEY} was made, and is not there")
        return found, made

    def read_key(self) -> str | None:
        """Returns the key; None where there is none. Raises SettingsError for a file that holds none, or one that
        others may read, and OSError for a folder that cannot be entered."""
        file = self.path / KEY
        try:
            descriptor = os.open(file, _READING)
        except (FileNotFoundError, NotADirectoryError):
            if file.is_symlink():
                raise SettingsError(f"{file} is no file") from None
            return None
        except PermissionError as error:
            if not os.access(self.path, os.X_OK):
                raise
            owner = file.stat().st_uid if hasattr(os, "getuid") else ""
            raise SettingsError(f"{file}: {error.strerror}; it belongs to user {owner}") from error
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise SettingsError(f"{file} is no file")
            if os.name == "posix" and mode & _OTHERS:
                raise SettingsError(f"{file} has mode {stat.S_IMODE(mode):04o}, so that others may use it; chmod 600")
            text = os.read(descriptor, 1024)
        finally:
            os.close(descriptor)
        if not _KEY_TEXT.fullmatch(text):
            raise SettingsError(f"{file} does not hold the 64 hexadecimal digits that a gateway has written")
        return text.strip().decode("ascii")

    def forget(self, tenant: str, now: float | None = None) -> None:
        """Begins a new epoch of an API key, or of all (`EVERYONE`): what was sealed before is never opened again. The
        epoch begins at the call. Raises FileNotFoundError where no gateway has its folder here."""
        when = time.time() if now is None else now
        with self._locked():
            self._seen = None
            try:
                forgotten = self._read()
            except ValueError:
                # What the file said of others is not known any more.
                forgotten = {EVERYONE: when}
            self._publish(
                FORGOTTEN, msgspec.json.encode({**forgotten, tenant: max(when, forgotten.get(tenant, 0.0))}), True
            )

    def learn(self, tenant: str, when: float) -> None:
        """Notes what a store that several machines share says of an epoch."""
        self._learnt[tenant] = max(when, self._learnt.get(tenant, 0.0))

    def epoch(self, tenant: str) -> float:
        """Returns when the present epoch of an API key began, in seconds since 1970; 0.0: it is the first one. Raises
        OSError or ValueError for a file that cannot be read: nothing that may be forgotten is opened."""
        (began,) = self.epochs((tenant,))
        return began

    def epochs(self, tenants: Sequence[str]) -> list[float]:
        """Returns the same of several API keys, for one look at the file."""
        known, learnt = self._read(), self._learnt
        least = max(known.get(EVERYONE, 0.0), learnt.get(EVERYONE, 0.0))
        return [max(least, known.get(tenant, 0.0), learnt.get(tenant, 0.0)) for tenant in tenants]

    def _read(self) -> dict[str, float]:
        """Returns the times of the file, which is read again once it has changed."""
        file = self.path / FORGOTTEN
        try:
            found = file.stat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # There is none, or no folder that this process may enter.
            return {}
        seen = (found.st_mtime_ns, found.st_ino)
        if seen != self._seen:
            try:
                self._forgotten = _READ.decode(file.read_bytes())
            except msgspec.DecodeError as error:
                raise ValueError(f"{file}: {error}") from error
            self._seen = seen
        return self._forgotten

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock of the folder, so that no process undoes what another one writes."""
        if not LOCKS:
            yield
            return
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            until = time.monotonic() + PATIENCE_S
            while not _lock(folder):
                if time.monotonic() >= until:
                    raise OSError(errno.EBUSY, "another process holds the lock of the folder")
                time.sleep(0.01)
            yield
            # Not every file system does this for folders.
            with contextlib.suppress(OSError):
                os.fsync(folder)
        finally:
            os.close(folder)

    def _publish(self, name: str, data: bytes, replace: bool = False) -> None:
        """Writes a file, whose name appears with the whole content; one that exists stays, or else is replaced."""
        file = self.path / name
        made = file.with_name(f".{name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            self._write(made, data)
            if replace or not _link(made, file):
                made.replace(file)
        finally:
            made.unlink(missing_ok=True)

    def _write(self, file: Path, data: bytes) -> None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            written.write(data)
            written.flush()
            if hasattr(os, "fchown"):
                self._give(descriptor)
            os.fsync(descriptor)

    def _give(self, descriptor: int) -> None:
        """Gives a file that root has made to the user of the service. Raises PermissionError for anyone else than these
        two, whose file the service could not read."""
        files = [file for name in (KEY, FORGOTTEN) if (file := self.path / name).exists()]
        owner = (files[0] if files else self.path).stat()
        user = os.geteuid()
        if user == 0 and owner.st_uid != 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        elif files and user != owner.st_uid:
            raise PermissionError(errno.EACCES, f"the files belong to user {owner.st_uid}, who alone may write them")


def folder_fault(folder: Path) -> str:
    """Returns why nothing can be made in a folder, or the folder itself where it is not there; empty: it can be. Makes
    nothing."""
    place = folder.absolute()
    while not os.path.exists(place):
        place = place.parent
    if not place.is_dir():
        return f"{place} is no folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"


def file_fault(file: Path) -> str:
    """Returns why a file can neither be written nor made; empty: it can. Makes nothing."""
    if not os.path.exists(file):
        return folder_fault(file.parent)
    return "" if os.path.isfile(file) and os.access(file, os.W_OK) else f"{file} cannot be written"


def keys_of(state: StateSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the operator's keys. Raises SettingsError for one that is too short to be random, or not ASCII."""
    keys = tuple(key for part in environ.get(state.key_env, "").split(",") if (key := part.strip()))
    if any(len(key) < SHORTEST_KEY or not key.isascii() for key in keys):
        raise SettingsError(
            f"a key of the state ({state.key_env}) has at least {SHORTEST_KEY} characters, all of them ASCII, as"
            " `openssl rand -hex 32` prints them"
        )
    return keys


class StateKeys:
    """The keys that seal what clients keep: the operator's, the first of which seals and all of which open, or else the
    one in the folder. Raises SettingsError for a key that is too short.

    Opened once, before a gateway serves; the workers of a supervisor have its keys."""

    def __init__(self, state: StateSettings, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = StateFolder(environ, state.folder)
        self._variable = state.key_env
        self._named = bool(state.folder)
        self._passing = False
        self._opened = False
        self._fault = ""
        self._keys = keys_of(state, environ)

    def open(self) -> None:
        """Reads the key of the folder. Where the operator has set none, one is made at the first start, and told.
        Raises SettingsError for what the folder holds and this process cannot use."""
        if self._opened:
            return
        try:
            self.folder.begin()
            if not self._keys:
                self._keys = (self._own(),)
        except OSError as error:
            self._do_without(error)
        try:
            self.folder.epoch(EVERYONE)
        except (OSError, ValueError) as error:
            raise SettingsError(f"{error}: it says which compactions are no longer opened") from error
        self._opened = True

    def check(self) -> None:
        """Raises SettingsError for what `open` would refuse. Makes nothing."""
        if self._named and (fault := self.folder.fault()):
            raise SettingsError(f"state.folder: {self.folder.path} cannot be used: {fault}")
        try:
            if not self._keys:
                self.folder.read_key()
            self.folder.epoch(EVERYONE)
        except SettingsError as error:
            raise self._unusable(error) from error
        except ValueError as error:
            raise SettingsError(str(error)) from error
        except OSError:
            # A folder that cannot be used, without which a gateway runs.
            return

    def sealing(self) -> tuple[str, ...]:
        """Returns the keys. Raises SettingsError, where they were not opened before."""
        self.open()
        return self._keys

    def warn(self) -> None:
        """Warns, once, where something is sealed that nobody opens after a restart."""
        if self._passing:
            self._passing = False
            LOGGER.warning("a compaction was made that cannot be opened after a restart; set %s", self._variable)

    def epoch(self, tenant: str) -> float | None:
        """Returns when the present epoch of an API key began; None where that cannot be read, which is logged."""
        (began,) = self.epochs((tenant,))
        return began

    def epochs(self, tenants: Sequence[str]) -> Sequence[float | None]:
        """Returns the same of several API keys, for one look at the folder."""
        try:
            return self.folder.epochs(tenants)
        except (OSError, ValueError) as error:
            if self._fault != str(error):
                self._fault = str(error)
                LOGGER.error("no compaction is opened, for what is forgotten cannot be read: %s", error)
            return [None] * len(tenants)

    def _own(self) -> str:
        try:
            key, made = self.folder.key()
        except SettingsError as error:
            raise self._unusable(error) from error
        if made:
            told = "made a key that seals compactions, in %s; several machines need the same one in %s"
            LOGGER.info(told, self.folder.path, self._variable)
        return key

    def _unusable(self, error: SettingsError) -> SettingsError:
        return SettingsError(f"{error.message}. Put it right, or set {self._variable} to a key of your own")

    def _do_without(self, error: OSError) -> None:
        """A gateway may run without a folder, and its requests are served all the same."""
        reason = error.strerror or str(error)
        if self._named:
            raise SettingsError(f"state.folder: {self.folder.path} cannot be used: {reason}") from error
        if self._keys:
            told = "nothing can be kept in %s (%s): of what is forgotten, only what the store tells counts here"
            LOGGER.info(told, self.folder.path, reason)
        else:
            told = "no key can be kept in %s (%s): compactions will not be opened after a restart, unless %s is set"
            LOGGER.info(told, self.folder.path, reason, self._variable)
            self._passing = True
            self._keys = (secrets.token_hex(_KEY_BYTES),)


def _path(environ: Mapping[str, str]) -> Path:
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.partition(":")[0])
    state = Path(environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else _home(environ) / ".local" / "state") / "dragoman"


def _home(environ: Mapping[str, str]) -> Path:
    if given := environ.get("USERPROFILE" if os.name == "nt" else "HOME"):
        return Path(given)
    try:
        return Path.home()
    except RuntimeError:
        # A user without a name, to whom containers give this one.
        return Path("/")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _link(made: Path, file: Path) -> bool:
    """Gives a file its name, unless another one has it. Returns False on a file system without hard links."""
    try:
        os.link(made, file)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True
