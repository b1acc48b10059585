"""Reads and writes the files of recordings. Only their owner may read them (mode 0600), and none is overwritten."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.recording.line_format import encode_line
from gateway.recording.lines import MAX_FILE, HeaderLine, RecordingError
from gateway.recording.recording import Interaction, Recording, read_recording

# Without it, Windows writes each line end as two bytes.
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)


def load_recording(path: Path) -> Recording:
    """Reads a file. Raises InvalidRequest for one that cannot be read, and RecordingError for one that is no
    recording."""
    try:
        with path.open("rb") as file:
            # A device has no size, and may have no end.
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return read_recording(data)
    except RecordingError as error:
        raise RecordingError(f"{path}: {error.message}") from error


def save_recording(path: Path, recording: Recording) -> int:
    """Writes a new file and returns its size. Raises InvalidRequest for one that is there already, or cannot be
    written, and RecordingError for one that would be too large; then there is none."""
    file = RecordingFile(path, recording.header)
    with _whole_or_none(path), file:
        for interaction in recording.interactions():
            file.append(interaction)
        return file.size


def save_text(path: Path, text: str) -> int:
    """Writes a new file and returns its size. Raises InvalidRequest for one that is there already, or cannot be
    written; then there is none."""
    data = text.encode()
    file = _created(path)
    with _whole_or_none(path):
        try:
            _write(path, file, data)
        finally:
            os.close(file)
    return len(data)


def save_folder(path: Path, files: Mapping[str, bytes]) -> int:
    """Writes a new folder with these files and returns their size. Raises InvalidRequest for one that is there
    already, or cannot be written; then there is none."""
    try:
        path.mkdir(mode=0o700)
        with _whole_or_none(path):
            for name, content in files.items():
                (path / name).write_bytes(content)
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be written: {error.strerror}") from error
    return sum(map(len, files.values()))


class RecordingFile:
    """A file that requests are appended to, each whole. Use with `with`."""

    def __init__(self, path: Path, header: HeaderLine) -> None:
        """Raises InvalidRequest for a file that is there already, or cannot be written."""
        self._path = path
        self.size = 0
        self._file = _created(path)
        with _whole_or_none(path):
            try:
                self._write(encode_line(header))
            except InvalidRequest:
                self.close()
                raise

    @property
    def removed(self) -> bool:
        """Whether somebody has deleted the file, so that nobody can read what is appended."""
        return os.fstat(self._file).st_nlink == 0

    def append(self, interaction: Interaction) -> None:
        """Adds one request. Raises RecordingError where it would exceed the caps and InvalidRequest where it cannot be
        written, and then adds nothing."""
        data = b"".join(map(encode_line, interaction.lines()))
        if self.size + len(data) > MAX_FILE:
            raise RecordingError(f"{self._path}: the recording would be larger than {MAX_FILE} bytes.")
        self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            _write(self._path, self._file, data)
        except InvalidRequest:
            # A full disk takes a part of it, and the next request would be appended to half a line.
            os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def __enter__(self) -> "RecordingFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _whole_or_none(path: Path) -> Iterator[None]:
    """Deletes a new file or folder again if the block fails. The block closes the file: Windows deletes no open one."""
    with ExitStack() as failed:
        if path.is_dir():
            failed.callback(shutil.rmtree, path, ignore_errors=True)
        else:
            failed.callback(path.unlink, missing_ok=True)
        yield
        failed.pop_all()


def _created(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY, 0o600)
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be written: {error.strerror}") from error


def _write(path: Path, file: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be written: {error.strerror}") from error
