"""Settings -> a serving process: uvicorn with our protocol guard, signals, reloading, draining and an exit status."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from gateway.errors import SettingsError
from gateway.server.app import Gateway, create_app
from gateway.server.board import Board
from gateway.server.descriptors import default_connections, last_for_clients, most_descriptors, raise_limit
from gateway.server.guard import guarded
from gateway.server.holder import holder_name
from gateway.server.listener import address, bind
from gateway.server.log import LOGGER, logging_to
from gateway.server.mishaps import Mishaps
from gateway.server.reload import Reloader, Source
from gateway.server.services import Services
from gateway.server.shared_store import SharedStore
from gateway.server.workers import Supervisor, Worker
from gateway.settings import ServerSettings, Settings

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
BEAT_S: Final = 1
PARTIAL: Final = "only the requests that this worker serves"


class GatewayServer(uvicorn.Server):
    """Drains on the first signal, stops at once on the second, and leaves with status 0 after either.

    A worker may be sent the first signal more than once (by its supervisor and with the whole group); it stops at once
    on SIGQUIT."""

    def __init__(
        self, app: Gateway, signals: bool = True, source: Source | None = None, supervisor: int | None = None
    ) -> None:
        super().__init__(_config(app))
        self._services = app.services
        self._signals = signals
        self._source = source
        self._supervisor = supervisor
        self._tasks: list[asyncio.Task[None]] = []
        self._terminal = os.isatty(2)
        self.on_ready: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again at the end, and so die by it after a clean stop."""
        if not self._signals:
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in self._numbers()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _numbers(self) -> tuple[signal.Signals, ...]:
        return SIGNALS if self._supervisor is None else (*SIGNALS, signal.SIGQUIT)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit |= self.should_exit if self._supervisor is None else sig == signal.SIGQUIT
        self.should_exit = True
        self._services.ready = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if self._source is not None:
                self._watch(Reloader(self._services, self._source))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            self._tasks.append(asyncio.create_task(self._beat()))
            self.on_ready()

    async def _beat(self) -> None:
        """Keep what is shared with other workers fresh; and do not outlive the supervisor."""
        while self._supervisor in (None, os.getppid()):
            self._services.settle()
            await asyncio.sleep(BEAT_S)
        LOGGER.error("the supervisor has ended; this worker stops, too")
        self.handle_exit(signal.SIGTERM, None)

    def _watch(self, reloader: Reloader) -> None:
        self._tasks.append(asyncio.create_task(reloader.run()))
        if self._signals:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up, reloader)

    def _hang_up(self, reloader: Reloader) -> None:
        """Whoever closes the terminal wants an end; whoever sends the signal wants the file to be read."""
        if self._terminal and not os.isatty(2):
            self.handle_exit(signal.SIGHUP, None)
        else:
            reloader.ask()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._services.drain()
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)


def serve(settings: Settings, insecure: bool, announce: Callable[[str], None], source: Source | None = None) -> None:
    """Serve until a signal. `announce` is given the address once requests are taken; from `source` the settings are
    read again. Raises SettingsError."""
    raise_limit()
    app = _checked_app(settings, insecure)
    with contextlib.closing(bind(settings.server)) as listener:
        if settings.server.workers == 1:
            _run(app, listener, source, lambda: announce(address(listener)))
            return
        supervisor = Supervisor(settings, source)
        worker = supervisor.run(lambda: announce(address(listener)))
        if worker is not None:
            try:
                _run(_checked_app(worker.settings, insecure), listener, source, worker.ready, worker)
            finally:
                worker.folder.leave()
        elif supervisor.failed:
            raise _not_started()


def _checked_app(settings: Settings, insecure: bool) -> Gateway:
    app = create_app(settings)
    app.services.check_exposure(insecure)
    return app


def _run(
    app: Gateway,
    listener: socket.socket,
    source: Source | None,
    on_ready: Callable[[], None],
    worker: Worker | None = None,
) -> None:
    """Serve in this process, until a signal."""
    services = app.services
    server = GatewayServer(app, source=source, supervisor=worker and worker.supervisor)

    def settled() -> None:
        _settle()
        on_ready()

    server.on_ready = settled
    with logging_to(services.settings.log, services.redact) as log:
        services.metrics.read("gateway_log_drops_total", lambda: log.dropped)
        _share(services, worker)
        _warn(services.settings.server)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(server, listener))
        if log.dropped:
            LOGGER.warning("%d log lines were dropped", log.dropped)
    services.admission.store.close()
    services.show()
    if not server.started:
        raise _not_started()


def _warn(server: ServerSettings) -> None:
    """Tell of a limit that means less than it says."""
    if (server.max_connections or 0) > default_connections():
        LOGGER.warning(
            "server.max_connections is %d, but %d descriptors are enough for %d clients with a backend each",
            server.max_connections,
            most_descriptors(),
            default_connections(),
        )


def _share(services: Services, worker: Worker | None) -> None:
    """Join the other workers, and whoever else counts in the same file."""
    server = services.settings.server
    if worker is not None:
        services.board = Board(worker.folder.path, worker.name)
        services.feed.show_first("partial", {"worker": worker.number, "workers": server.workers, "shows": PARTIAL})
    if server.store_file is not None:
        with contextlib.suppress(OSError):
            Path(server.store_file).parent.mkdir(parents=True, exist_ok=True)
    file = server.store_file or (worker and worker.folder.path / "limits.db")
    if file is not None:
        services.admission.store = SharedStore(Path(file), holder_name(os.getpid()), time.monotonic())


def _not_started() -> SettingsError:
    return SettingsError("the gateway could not be started; the log says why")


async def _serve(server: GatewayServer, listener: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(Mishaps())
    await server.serve([listener])


def _settle() -> None:
    """Suit the interpreter to a server. The collector looks no more at what lives as long as the process, and less
    often at what dies young by itself: with Python's own thresholds it took a fifth of a request's time. A thread
    that reads a large request gives way sooner to the loop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.001)


def _config(app: Gateway) -> uvicorn.Config:
    server = app.services.settings.server
    return uvicorn.Config(
        app.front,
        http=guarded(
            server.head_timeout_s,
            # This one may change with a reload.
            lambda: app.services.settings.server.write_timeout_s,
            server.max_connections or default_connections(),
            last_for_clients(),
        ),
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        # Our own drain ends what still runs; this is for what would not even then.
        timeout_graceful_shutdown=int(server.drain_s) + 3,
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if os.name == "nt":
        return None
    import uvloop

    return uvloop.new_event_loop
