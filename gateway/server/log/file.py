"""Writes lines to one rotated log file that several processes may write, and that another program may rename."""

import logging
import os
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # on Windows, where one process writes the file
    LOCKS = False
else:
    LOCKS = True


class SharedFile(RotatingFileHandler, WatchedFileHandler):
    """Appends, so that whole writes of several processes stay apart; rotates by size, and reopens the file's path when
    another process or logrotate has rotated the file."""

    def __init__(self, path: Path | str, max_bytes: int = 0, backups: int = 0) -> None:
        RotatingFileHandler.__init__(self, path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")
        self._statstream()

    def shouldRollover(self, record: logging.LogRecord) -> int:
        self.reopenIfNeeded()
        return int(super().shouldRollover(record))

    def doRollover(self) -> None:
        """Rotates the file once: a process that waited for the lock finds a new file at the path, and opens that."""
        if not LOCKS:
            # A second descriptor, open for a lock, would prevent the file from being renamed there.
            self._rotate()
            return
        lock = os.open(self.baseFilename, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.reopenIfNeeded()
            if self.stream is not None and os.path.sameopenfile(self.stream.fileno(), lock):
                self._rotate()
        finally:
            os.close(lock)

    def _rotate(self) -> None:
        super().doRollover()
        self._statstream()
