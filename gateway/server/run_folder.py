"""One run of several workers -> a folder that only they see, and that goes with the last of them.

The kernel keeps a lock on the folder for as long as one process of the run lives, however it ends (and systemd-tmpfiles
ages no folder that is locked). What a run could not take away itself, because all of it was killed, the next one does.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "dragoman-run-"


class RunFolder:
    """Made, mode 0700, by the supervisor; its workers have it by inheritance."""

    def __init__(self, place: Path | None = None) -> None:
        place = place or Path(tempfile.gettempdir())
        _sweep(place)
        self._lock: int | None = None
        while self._lock is None:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            self._lock = _locked(self.path)

    def leave(self) -> None:
        """This process has ended its work; if it is the last one of the run, the folder goes."""
        if self._lock is not None:
            # The lock belongs to what all processes of the run have open in common, so it is asked for from outside.
            os.close(self._lock)
            self._lock = None
            _remove(self.path)


def _sweep(place: Path) -> None:
    """Take away what dead runs of this user have left."""
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
    """A descriptor that holds the folder's lock; None when somebody else does, or there is nothing to lock."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it may have taken the folder away meanwhile.
        os.stat(folder)
    except OSError:
        os.close(lock)
        return None
    return lock
