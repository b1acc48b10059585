"""Saves every chat request in a folder, redacted, behind the answer: no request waits for it."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.inspector.requests import ContentsReader
from gateway.recording.files import RecordingFile
from gateway.recording.lines import HeaderLine, RecordingError, Redaction
from gateway.recording.recording import Interaction, Recording
from gateway.recording.redact.redact import redact_alike
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.transport import gateway_version
from gateway.settings import Settings

# Requests that wait to be saved; a disk that is slower loses some, and the log says how many.
_MOST_WAITING: Final = 64


class RecordingFolder:
    """One worker's files in the folder; a new one begins where the last is full or was deleted."""

    def __init__(self, folder: str) -> None:
        """Raises SettingsError for a folder that cannot be used."""
        self._folder = Path(folder)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"inspector.record: {folder} cannot be made: {error.strerror}") from error
        self._waiting: asyncio.Queue[ContentsReader] = asyncio.Queue(_MOST_WAITING)
        self._file: RecordingFile | None = None
        self._seed = secrets.token_bytes(16)
        self._x = 0
        self.lost = 0

    def save(self, read: ContentsReader) -> None:
        """Takes a request that has ended; it is read and written later."""
        try:
            self._waiting.put_nowait(read)
        except asyncio.QueueFull:
            self.lost += 1
            LOGGER.warning("a request was not recorded, since %d others wait; %d so far", _MOST_WAITING, self.lost)

    @asynccontextmanager
    async def running(self, settings: Callable[[], Settings], known: Callable[[], list[str]]) -> AsyncIterator[None]:
        """Writes what `save` takes until the block ends, and then the rest. `known` returns the secrets that must never
        be written."""
        LOGGER.warning("every request is recorded in %s: conversations are stored on disk, redacted", self._folder)
        task = asyncio.create_task(self._write_all(settings, known))
        try:
            yield
        finally:
            await self._waiting.join()
            task.cancel()
            await asyncio.wait((task,))
            self._close()

    async def _write_all(self, settings: Callable[[], Settings], known: Callable[[], list[str]]) -> None:
        while True:
            read = await self._waiting.get()
            try:
                await asyncio.to_thread(self._write, read, settings(), known())
            except InvalidRequest as error:
                self.lost += 1
                LOGGER.error("a request was not recorded: %s", error.message)
            except Exception:  # noqa: BLE001 (the boundary of the task: the next request is recorded)
                self.lost += 1
                LOGGER.exception("a request was not recorded")
            finally:
                self._waiting.task_done()

    def _write(self, read: ContentsReader, settings: Settings, known: list[str]) -> None:
        self._x += 1
        contents = read()
        secrets = [*known, *contents.secrets]
        (redacted,) = redact_alike([contents.interaction], "shape", self._seed, secrets, settings=settings)
        one = redacted.interaction.numbered(self._x)
        if self._file is not None and self._file.removed:
            self._close()
        try:
            self._opened().append(one)
        except RecordingError:
            self._close()
            self._opened().append(one)

    def _opened(self) -> RecordingFile:
        if self._file is None:
            header = msgspec.structs.replace(new_recording(()).header, redaction=Redaction("shape"))
            self._file = RecordingFile(self._next_path(), header)
        return self._file

    def _close(self) -> None:
        # Forgotten also where no other one can be opened: its descriptor may soon be that of a connection.
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_path(self) -> Path:
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        return self._folder / f"{now}-{os.getpid()}-{self._x}.dragoman.jsonl"


def new_recording(interactions: Sequence[Interaction]) -> Recording:
    """Returns a recording of these requests, numbered from 1."""
    header = HeaderLine(gateway=gateway_version(), made=datetime.now(UTC).isoformat(timespec="seconds"))
    return Recording(header).with_interactions(one.numbered(x) for x, one in enumerate(interactions, 1))
