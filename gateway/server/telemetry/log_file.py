"""Writes lines to one rotated log file that several processes may write, and that another program may rename."""

import fcntl
import logging
import os
from logging.handlers import RotatingFileHandler


class SharedFile(RotatingFileHandler):
    """Appends, so that whole writes of several processes stay apart; reopens the file's path when another process or
    logrotate has rotated the file."""

    def shouldRollover(self, record: logging.LogRecord) -> int:
        self._follow()
        return int(super().shouldRollover(record))

    def doRollover(self) -> None:
        """Rotates the file once: a process that waited for the lock finds a new file at the path, and opens that."""
        lock = os.open(self.baseFilename, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._inode() == _inode_of(lock) == _inode_of(self.baseFilename):
                super().doRollover()
            else:
                self._follow()
        finally:
            os.close(lock)

    def _follow(self) -> None:
        if self.stream is not None and self._inode() != _inode_of(self.baseFilename):
            self.stream.close()
            self.stream = self._open()

    def _inode(self) -> tuple[int, int] | None:
        return None if self.stream is None else _inode_of(self.stream.fileno())


def _inode_of(file: str | int) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
