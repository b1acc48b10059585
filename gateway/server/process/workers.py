"""Runs several worker processes on one listening socket and restarts those that end by themselves.

The supervisor serves no requests and starts no thread, so that it can fork at any time. Workers share the socket that
was bound before: while one is down, the others accept its waiting connections. SIGTERM and SIGINT drain all of them, a
second one stops them at once (the supervisor sends SIGQUIT to a worker, since a terminal or service manager may signal
the whole group); SIGHUP reaches every worker.
"""

import contextlib
import logging
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from gateway.core.errors import SettingsError
from gateway.server.log.logger import LEVELS, LOGGER, LineFormatter, LogFile, StderrHandler
from gateway.server.process.lifecycle_log import log_end, log_stop
from gateway.server.process.runtime_directory import RuntimeDirectory
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.worker_metrics import WorkerMetrics
from gateway.settings import LogSettings, Settings
from gateway.settings.reload_policy import keep_restart_only
from gateway.settings.source import SettingsSource

POLL_S: Final = 0.05
AGAIN_S: Final = 1.0
# A worker that ended sooner than this has failed; each failure in a row doubles the wait.
SHORT_S: Final = 10
FIRST_WAIT_S: Final = 0.2
LAST_WAIT_S: Final = 30
STOP: Final = (signal.SIGTERM, signal.SIGINT)
CAUGHT: Final = (*STOP, signal.SIGHUP)


class Worker(NamedTuple):
    """The parameters of a worker process: its settings, its number among the workers, its unique name, the directory of
    the run, the supervisor's process id, and the callback that reports it ready."""

    settings: Settings
    number: int
    name: str
    folder: RuntimeDirectory
    supervisor: int
    ready: Callable[[], None]


class _Child(NamedTuple):
    number: int
    serial: int
    since: float
    failures: int


class Supervisor:
    """Starts `server.workers` processes. Afterwards, `failed` states whether one could not even begin to serve."""

    def __init__(self, settings: Settings, source: SettingsSource | None) -> None:
        self._settings = settings
        self._source = source
        self._pid = os.getpid()
        self._folder = RuntimeDirectory()
        self._worker_metrics = WorkerMetrics(self._folder.path, "0")
        self._metrics = Metrics()
        self._children: dict[int, _Child] = {}
        self._due: list[tuple[float, int, int]] = [(0, number, 0) for number in range(1, settings.server.workers + 1)]
        self._serial = 0
        self._served = mmap.mmap(-1, settings.server.workers)
        self._stops: list[int] = []
        self._logged = 0
        self._again = 0.0
        self._hung_up = False
        self._terminal = os.isatty(2)
        self.failed = False

    def run(self, announce: Callable[[], None]) -> Worker | None:
        """Returns the worker's parameters in a worker process; returns None in the supervisor when all workers have
        ended."""
        with self._catching(), _logging(self._settings.log):
            worker = self._supervise(announce)
        if worker is None:
            self._folder.release()
        return worker

    def _supervise(self, announce: Callable[[], None]) -> Worker | None:
        announced = False
        while self._children or (self._due and not self._stops):
            worker = self._start_due()
            if worker is not None:
                return worker
            if not announced and any(self._served):
                announced = True
                announce()
            time.sleep(POLL_S)
            self._pass_on()
            self._reap()
        if announced:
            log_end()
        return None

    def _start_due(self) -> Worker | None:
        now = time.monotonic()
        for entry in list(self._due):
            due, number, failures = entry
            if due > now or self._stops:
                continue
            self._due.remove(entry)
            self._serial += 1
            child = _Child(number, self._serial, now, failures)
            sys.stdout.flush()
            # Blocked in a worker until it can reload settings; the default action of the signal would end it.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
            try:
                pid = os.fork()
            except OSError as error:
                self._again_later(child, f"cannot be started: {error.strerror}")
            else:
                if pid == 0:
                    return self._worker(child)
                self._children[pid] = child
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        return None

    def _worker(self, child: _Child) -> Worker:
        def ready() -> None:
            self._served[child.number - 1] = 1

        return Worker(self._latest(), child.number, str(child.serial), self._folder, self._pid, ready)

    def _latest(self) -> Settings:
        """Returns the settings as the other workers use them by now; those of the start while the file is invalid."""
        if self._source is None or self._serial <= self._settings.server.workers:
            return self._settings
        try:
            return keep_restart_only(self._settings, self._source.load())[0]
        except SettingsError:
            return self._settings

    def _pass_on(self) -> None:
        """Forwards the received signals to the workers."""
        if self._hung_up:
            self._hung_up = False
            if self._terminal and not os.isatty(2):
                self._stops.append(signal.SIGHUP)
            else:
                self._signal(signal.SIGHUP)
        wanted, now = min(len(self._stops), 2), time.monotonic()
        # Repeated: a process that was just forked may have handled the signal as one to its supervisor.
        if wanted > self._logged or (wanted and now >= self._again):
            if wanted > self._logged:
                log_stop(self._settings, self._stops[wanted - 1], at_once=wanted == 2)
            self._logged, self._again = wanted, now + AGAIN_S
            self._signal(signal.SIGTERM if wanted == 1 else signal.SIGQUIT)

    def _signal(self, number: int) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _reap(self) -> None:
        for pid, child in list(self._children.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del self._children[pid]
                self._worker_metrics.retire(str(child.serial))
                if not self._stops:
                    self._ended(child, status)

    def _ended(self, child: _Child, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        if not self._served[child.number - 1]:
            LOGGER.error("worker %d ended %s before it was ready", child.number, how)
            self.failed = True
            self._stops.append(signal.SIGTERM)
            return
        self._again_later(child, f"ended {how}")
        self._metrics.worker_restarts.inc()
        self._worker_metrics.publish(self._metrics.snapshot())

    def _again_later(self, child: _Child, what: str) -> None:
        failures = child.failures + 1 if time.monotonic() - child.since < SHORT_S else 0
        wait = min(FIRST_WAIT_S * 2**failures, LAST_WAIT_S)
        LOGGER.error("worker %d %s; it restarts in %.1f s", child.number, what, wait)
        self._due.append((time.monotonic() + wait, child.number, failures))

    @contextlib.contextmanager
    def _catching(self) -> Iterator[None]:
        """Installs signal handlers; a worker leaves the block too, and then has the previous handlers."""
        before = {number: signal.signal(number, self._caught) for number in CAUGHT}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if number in STOP:
            self._stops.append(number)
        else:
            self._hung_up = True


@contextlib.contextmanager
def _logging(settings: LogSettings) -> Iterator[None]:
    """Writes the supervisor's few log lines synchronously: the queue's thread would not survive a fork. A line that
    cannot be written is dropped: left in the file's buffer, it would fail again in each worker, which closes the file
    and would end there."""
    handlers: list[logging.Handler] = [StderrHandler(sys.stderr)]
    if settings.file is not None:
        with contextlib.suppress(OSError):
            Path(settings.file).parent.mkdir(parents=True, exist_ok=True)
            handlers.append(LogFile(settings.file))
    before = LOGGER.level
    LOGGER.setLevel(LEVELS[settings.level])
    for handler in handlers:
        handler.setFormatter(LineFormatter())
        LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.setLevel(before)
        for handler in handlers:
            LOGGER.removeHandler(handler)
            handler.close()
