"""Creates a private directory for one run of several workers and removes it with the last of them.

The kernel keeps a lock on the directory for as long as one process of the run lives, however it ends (and
systemd-tmpfiles removes no locked directory). The next run removes the directory of a run whose processes were all
killed.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "dragoman-run-"


class RuntimeDirectory:
    """A directory of mode 0700 that the supervisor creates; its workers inherit it, and the `seed` that nobody else
    knows."""

    def __init__(self, place: Path | None = None) -> None:
        place = place or Path(tempfile.gettempdir())
        _sweep(place)
        self.seed = secrets.token_bytes(16)
        self._lock: int | None = None
        while self._lock is None:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            self._lock = _locked(self.path)

    def release(self) -> None:
        """Ends this process's use of the directory; the last process of the run removes it."""
        if self._lock is not None:
            # All processes of the run share the lock's open file description, so a new descriptor must test the lock.
            os.close(self._lock)
            self._lock = None
            _remove(self.path)


def _sweep(place: Path) -> None:
    """Removes the directories of this user's dead runs."""
    for folder in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid():
                _remove(folder)


def _remove(folder: Path) -> None:
    lock = _locked(folder)
    if lock is not None:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Returns a descriptor that holds the directory's lock; None when another process holds it, or the directory does
    not exist."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The former holder of the lock may have removed the directory meanwhile.
        os.stat(folder)
    except OSError:
        os.close(lock)
        return None
    return lock
