"""Writes log records to stderr and a rotated file, in one thread that the event loop never waits for.

A line can never fail or delay a request: records go into a bounded queue; records that exceed it are dropped and
counted.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Level, Notice, Stage
from gateway.core.secrets import without_secrets
from gateway.server.log.file import SharedFile
from gateway.settings import LogSettings

LOGGER: Final = logging.getLogger("gateway")
LEVELS: Final[Mapping[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_NAMES: Final = {level: logging.getLevelName(level) for level in LEVELS.values()}
# Their INFO lines repeat our own access line with less detail, or show addresses that may contain keys.
# What the exporter of traces and its HTTP client report of each batch, `traces cannot be exported` says once a minute.
QUIET: Final[Mapping[str, int]] = {
    **dict.fromkeys(("httpx", "httpcore", "asyncio", "uvicorn", "sse_starlette"), logging.WARNING),
    **dict.fromkeys(("opentelemetry", "requests", "urllib3"), logging.CRITICAL),
}
BATCH: Final = 64
PAUSE_S: Final = 0.02
CLOSE_S: Final = 2
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
        self.levelname = _NAMES.get(level) or logging.getLevelName(level)
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


class LineQueue(QueueHandler):
    """Queues records of any thread without waiting; a listener of its own writes them in batches from one thread."""

    def __init__(self, targets: Sequence[logging.Handler], limit: int = 10_000, redact: Callable[[str], str] = str):
        records: SimpleQueue[logging.LogRecord | None] = SimpleQueue()
        super().__init__(records)
        self._records = records
        self._limit = limit
        self._overflown = 0
        self._targets = targets
        self._writer = _LineWriter(records, targets, LineFormatter(redact))
        self._writer.start()

    @property
    def dropped(self) -> int:
        """The number of lines that exceeded the queue, could not be formatted, or could not be written to the file."""
        lost = sum(target.lost for target in self._targets if isinstance(target, LogFile))
        return self._overflown + self._writer.unformatted + lost

    def handle(self, record: logging.LogRecord) -> bool:
        """Queues a record as it is: the parent class formats it here, in the event loop, and its queue has no limit.
        Needs no lock, since the queue has its own."""
        if self._records.qsize() >= self._limit:
            self._overflown += 1
            return False
        self._records.put_nowait(record)
        return True

    def close(self) -> None:
        """Writes the queued records (for at most two seconds) and stops."""
        if not self._writer.closing:
            self._writer.close()
            for target in self._targets:
                target.close()
        super().close()


class _LineWriter(QueueListener):
    """Formats records and writes several lines at once: a write and a flush for each line would be two system calls a
    line, and every write takes the interpreter lock from the event loop."""

    def __init__(
        self,
        records: SimpleQueue[logging.LogRecord | None],
        targets: Sequence[logging.Handler],
        lines: LineFormatter,
    ) -> None:
        super().__init__(records, *targets)
        self._records = records
        self._lines = lines
        self.unformatted = 0
        self.closing = False

    def close(self) -> None:
        """Stops when the queued records are written, or after two seconds: a target may block without end."""
        self.closing = True
        stopping = threading.Thread(target=self.stop, name="log-end", daemon=True)
        stopping.start()
        stopping.join(CLOSE_S)

    def dequeue(self, block: bool) -> logging.LogRecord | None:  # type: ignore[override]  # None ends the thread
        """Waits for records; returns their lines as one record, or None at the end."""
        record = self._records.get(block)
        if record is not None and self._records.qsize() < BATCH and not self.closing:
            # More may follow at once.
            time.sleep(PAUSE_S)
        lines: list[str] = []
        while record is not None:
            lines += self._line(record)
            if lines and (len(lines) >= BATCH or self._records.empty()):
                break
            record = self._records.get()
        if record is None and lines:
            # The end is put back behind these lines.
            self.enqueue_sentinel()
        return logging.makeLogRecord({"msg": "\n".join(lines)}) if lines else None

    def _line(self, record: logging.LogRecord) -> Iterator[str]:
        try:
            yield self._lines.format(record)
        except (TypeError, ValueError, KeyError):
            self.unformatted += 1


class StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]  # generic only in its stub
    """Standard error that ignores its own failures (a closed pipe)."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class LogFile(SharedFile):
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
    targets: list[logging.Handler] = [StderrHandler(sys.stderr)]
    problem = ""
    if settings.file is not None:
        try:
            targets.append(_open_file(settings, Path(settings.file)))
        except OSError as error:
            problem = f"{settings.file}: {error.strerror}; logging to standard error only"
    with _capturing(settings, LineQueue(targets, redact=redact)) as queue:
        if problem:
            LOGGER.warning("%s", problem)
        yield queue


@contextmanager
def _capturing(settings: LogSettings, queue: LineQueue) -> Iterator[LineQueue]:
    """Makes the queue the only handler of this process, and puts everything back at the end."""
    root, factory = logging.getLogger(), logging.getLogRecordFactory()
    wanted = {LOGGER: LEVELS[settings.level], root: logging.WARNING}
    wanted |= {logging.getLogger(name): level for name, level in QUIET.items()}
    levels = {logger: logger.level for logger in wanted}
    handlers = list(root.handlers)
    logging.setLogRecordFactory(LineRecord)
    root.handlers[:] = [queue]
    for logger, level in wanted.items():
        logger.setLevel(level)
    try:
        yield queue
    finally:
        root.handlers[:] = handlers
        for logger, level in levels.items():
            logger.setLevel(level)
        logging.setLogRecordFactory(factory)
        queue.close()


def _open_file(settings: LogSettings, path: Path) -> SharedFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    return LogFile(path, int(settings.max_mb * 2**20), settings.backups)


def log_line(level: int, request_id: str, message: str, *args: object) -> None:
    """Logs as `LOGGER.log` does, without looking for a caller, an exception or other fields: every request writes one
    line."""
    if LOGGER.isEnabledFor(level):
        record = logging.getLogRecordFactory()(LOGGER.name, level, "", 0, message, args, None)
        record.request_id = request_id
        # Not `handle`, which asks the filters of a logger that has none.
        LOGGER.callHandlers(record)


# The rule leads to docs/notices.md. People grep for the sentences of the other stages, so they stay as they are.
_PLACED: Final[frozenset[Stage]] = frozenset({"validate", "repair", "state", "guard", "profile", "encode", "backend"})


class _Redacted:
    """A text whose secrets are taken out when its line is written, in the thread that does so."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return without_secrets(self._text)


def log_notice(notice: Notice, request_id: str, paths: FieldPaths = CANONICAL_PATHS) -> None:
    """Logs one line per notice at its own level: its detail, for most stages behind the message's place and the
    rule. A detail names what a client or a backend has chosen, such as ids: what looks like a key in it is left out."""
    level = LEVELS[notice.level]
    if LOGGER.isEnabledFor(level):
        detail = _Redacted(notice.detail)
        if notice.stage in _PLACED:
            place = "" if notice.index is None else f"{paths.turn.format(turn=notice.index)} "
            log_line(level, request_id, "%s %s%s: %s", notice.stage, place, notice.rule, detail)
        else:
            log_line(level, request_id, "%s", detail)
