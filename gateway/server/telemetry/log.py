"""Writes log records to stderr and a rotated file, in one thread that the event loop never waits for.

A line can never fail or delay a request: records go into a bounded queue; records that exceed it are dropped and
counted.
"""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from gateway.core.notices import Level, Notice, Stage
from gateway.server.telemetry.log_file import SharedFile
from gateway.settings import LogSettings

LOGGER: Final = logging.getLogger("gateway")
LEVELS: Final[Mapping[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# Their INFO lines repeat our own access line with less detail, or show addresses that may contain keys.
QUIET: Final = ("httpx", "httpcore", "asyncio", "uvicorn", "sse_starlette")
BATCH: Final = 64
BANNER: Final = "=" * 60


def one_line(text: str) -> str:
    """Returns the text with all characters escaped that could end a line, move the cursor or change the reading
    direction."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class LineRecord(logging.LogRecord):
    """A record with only the fields that a line shows: the parent class also finds path, module, thread and process,
    which takes longer than the rest of the work for a line."""

    def __init__(
        self,
        name: str,
        level: int,
        pathname: str,
        lineno: int,
        msg: object,
        args: "logging._ArgsType | None",
        exc_info: "logging._SysExcInfoType | None",
        func: str | None = None,
        sinfo: str | None = None,
    ) -> None:
        self.name = name
        self.levelno = level
        self.levelname = logging.getLevelName(level)
        self.msg = msg
        self.args = args
        self.exc_info = exc_info
        self.exc_text = None
        self.stack_info = sinfo
        self.created = time.time()
        self.msecs = self.created % 1 * 1000


class LineFormatter(logging.Formatter):
    """Formats `2026-01-31T12:00:00.000Z INFO req_1 message`; an indented traceback follows, so that it cannot pose as a
    line."""

    _second = -1
    _stamp = ""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        request_id = getattr(record, "request_id", "-")
        line = f"{self._stamp}.{int(record.msecs):03d}Z {record.levelname} {request_id} {one_line(record.getMessage())}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n  | {one_line(part)}" for part in trace.splitlines())
        return self._redact(line)


class LineQueue(logging.Handler):
    """Accepts records from any thread without waiting and writes them in batches from its own."""

    def __init__(self, targets: list[logging.Handler], limit: int = 10_000, redact: Callable[[str], str] = str) -> None:
        super().__init__()
        self._dropped = 0
        self._targets = targets
        self._lines = LineFormatter(redact)
        self._limit = limit
        self._records: deque[logging.LogRecord] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of lines that exceeded the queue or could not be written to the file."""
        return self._dropped + sum(target.lost for target in self._targets if isinstance(target, _ForgivingFile))

    def handle(self, record: logging.LogRecord) -> bool:
        """Queues a record. Needs no lock, since a deque has its own."""
        if len(self._records) >= self._limit:
            self._dropped += 1
            return False
        self._records.append(record)
        if not self._wake.is_set():
            self._wake.set()
        return True

    def handleError(self, record: logging.LogRecord) -> None:
        self._dropped += 1

    def close(self) -> None:
        """Writes the queued records (for at most two seconds) and stops."""
        if not self._closing:
            self._closing = True
            self._wake.set()
            self._thread.join(timeout=2)
            for target in self._targets:
                target.close()
        super().close()

    def _batch(self, size: int) -> logging.LogRecord | None:
        """Returns the next lines as one record: a write and a flush for each line would be two system calls a line."""
        lines: list[str] = []
        for _ in range(size):
            record = self._records.popleft()
            try:
                lines.append(self._lines.format(record))
            except (TypeError, ValueError, KeyError):
                self._dropped += 1
        return logging.makeLogRecord({"msg": "\n".join(lines)}) if lines else None

    def _write(self) -> None:
        while not self._closing or self._records:
            self._wake.wait()
            self._wake.clear()
            # Records that arrive meanwhile wait for the next turn: every write takes the interpreter lock from the
            # loop.
            for left in range(len(self._records), 0, -BATCH):
                if (batch := self._batch(min(left, BATCH))) is not None:
                    for target in self._targets:
                        target.handle(batch)
            if not self._closing:
                time.sleep(0.02)


class _Forgiving(logging.StreamHandler):  # type: ignore[type-arg]  # generic only in its stub
    """Standard error that ignores its own failures (a closed pipe)."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class _ForgivingFile(SharedFile):
    """A rotated file that counts failed writes (a full disk, a removed directory), and reopens after each."""

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:
        self.lost += record.getMessage().count("\n") + 1
        # Unwritten bytes would otherwise stay in the stream's buffer, and fail every later write.
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


@contextmanager
def logging_to(settings: LogSettings, redact: Callable[[str], str] = str) -> Iterator[LineQueue]:
    """Sends every record of this process to the targets of the settings, until the block ends. `redact` removes the
    secrets from every line, tracebacks included, whichever logger wrote it."""
    targets: list[logging.Handler] = [_Forgiving(sys.stderr)]
    problem = ""
    if settings.file is not None:
        try:
            targets.append(_open_file(settings, Path(settings.file)))
        except OSError as error:
            problem = f"{settings.file}: {error.strerror}; logging to standard error only"
    queue = LineQueue(targets, redact=redact)
    root = logging.getLogger()
    before = (list(root.handlers), root.level, logging.getLogRecordFactory())
    # The look-up of the caller's frame is the other part of a record's cost (the logging HOWTO says so, and this way).
    logging._srcfile = None
    logging.setLogRecordFactory(LineRecord)
    root.handlers[:] = [queue]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(LEVELS[settings.level])
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    if problem:
        LOGGER.warning("%s", problem)
    try:
        yield queue
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        logging.setLogRecordFactory(before[2])
        queue.close()


def _open_file(settings: LogSettings, path: Path) -> RotatingFileHandler:
    path.parent.mkdir(parents=True, exist_ok=True)
    return _ForgivingFile(path, maxBytes=int(settings.max_mb * 2**20), backupCount=settings.backups, encoding="utf-8")


def log_line(level: int, request_id: str, message: str, *args: object) -> None:
    """Logs as `LOGGER.log` does, without looking for a caller, an exception or other fields: every request writes one
    line."""
    if LOGGER.isEnabledFor(level):
        record = logging.getLogRecordFactory()(LOGGER.name, level, "", 0, message, args, None)
        record.request_id = request_id
        LOGGER.handle(record)


# The rule leads to docs/notices.md. People grep for the sentences of the other stages, so they stay as they are.
_PLACED: Final[frozenset[Stage]] = frozenset({"validate", "repair", "guard", "profile", "encode", "backend"})


def log_notice(notice: Notice, request_id: str) -> None:
    """Logs one line per notice at its own level: its detail, for most stages behind the message's place and the
    rule."""
    level = LEVELS[notice.level]
    if LOGGER.isEnabledFor(level):
        if notice.stage in _PLACED:
            place = "" if notice.index is None else f"messages[{notice.index}] "
            log_line(level, request_id, "%s %s%s: %s", notice.stage, place, notice.rule, notice.detail)
        else:
            log_line(level, request_id, "%s", notice.detail)
