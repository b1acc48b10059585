"""Runs a serving process from settings: uvicorn with our protocol, signals, reloading, draining and an exit status."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn

from gateway.core.errors import SettingsError
from gateway.server.api.app import Gateway, create_app
from gateway.server.api.gateway_state import GatewayState
from gateway.server.http.protocol import http_protocol
from gateway.server.process.fd_limits import default_connections, last_for_clients, most_descriptors, raise_limit
from gateway.server.process.lifecycle_log import log_end, log_start, log_stop
from gateway.server.process.listener import AddressInUse, address, bind
from gateway.server.process.loop_exception_handler import LoopExceptionHandler
from gateway.server.process.settings_reload import Reloader, SettingsSource
from gateway.server.telemetry.log import LOGGER, logging_to
from gateway.server.telemetry.worker_metrics import WorkerMetrics
from gateway.server.upstream.schema_cache import update_caches
from gateway.settings import ServerSettings, Settings
from gateway.settings.compression import cut_before_summary
from gateway.settings.descriptor_files import reflection_cache
from gateway.settings.local_url import local_url

if TYPE_CHECKING:
    from gateway.server.process.workers import Worker

# Windows has SIGBREAK in addition, and sends it to a program whose window is closed.
SIGNALS: Final = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGBREAK"))
HAS_HANG_UP: Final = hasattr(signal, "SIGHUP")
BEAT_S: Final = 1
# The time in which clients get an error when the gateway stops at once.
LAST_S: Final = 0.5
PARTIAL: Final = "only the requests that this worker serves"


class GatewayServer(uvicorn.Server):
    """Drains on the first signal, stops at once on the second, and exits with status 0 after either.

    A worker may receive the first signal more than once (from its supervisor and with the whole group); it stops at
    once on SIGQUIT."""

    def __init__(
        self, app: Gateway, signals: bool = True, source: SettingsSource | None = None, worker: "Worker | None" = None
    ) -> None:
        super().__init__(_config(app))
        self._state = app.gateway_state
        self._signals = signals
        self._source = source
        self._supervisor = worker and worker.supervisor
        # One worker logs the events that happen to all workers alike.
        self._logs = worker is None or worker.number == 1
        self._signalled: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._terminal = os.isatty(2)
        self.on_ready: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replaces uvicorn's version, which would raise the signal again at the end, and so die by it after a clean
        stop."""
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
        # Logged later: the code that the signal interrupts may hold the lock of the log.
        self._signalled.append(sig)
        self._state.ready = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if self._source is not None:
                self._watch(Reloader(self._state, self._source, logs=self._logs))
            if self._supervisor is not None:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            self._tasks.append(asyncio.create_task(self._beat()))
            self.on_ready()

    async def _beat(self) -> None:
        """Keeps the state shared with other workers up to date, and ends this process when the supervisor has ended."""
        while self._supervisor in (None, os.getppid()):
            self._state.settle()
            await asyncio.sleep(BEAT_S)
        if self._logs:
            LOGGER.error("the supervisor has ended; this worker stops")
        self.handle_exit(signal.SIGTERM, None)

    def _watch(self, reloader: Reloader) -> None:
        self._tasks.append(asyncio.create_task(reloader.run()))
        if self._signals and HAS_HANG_UP:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up, reloader)

    def _hang_up(self, reloader: Reloader) -> None:
        """Stops the process when its terminal was closed; otherwise SIGHUP reloads the settings file."""
        if self._terminal and not os.isatty(2):
            self.handle_exit(signal.SIGHUP, None)
        else:
            reloader.ask()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._log_stop(at_once=False)
        self._state.drain()
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)
        if self.force_exit:
            await self._break_off()

    def _log_stop(self, at_once: bool) -> None:
        if self._supervisor is None and self._signalled:
            log_stop(self._state.settings, self._signalled[-1 if at_once else 0], at_once)

    async def _break_off(self) -> None:
        """Ends the running requests, since uvicorn no longer waits for anything. Clients that read get an error; the
        resources of the application are closed in order, since its task would end with a traceback."""
        self._log_stop(at_once=True)
        self._state.stop()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LAST_S)
        await self.lifespan.shutdown()


def serve(
    settings: Settings,
    insecure: bool,
    announce: Callable[[str], None],
    source: SettingsSource | None = None,
    prepare: Callable[[Gateway], None] = lambda app: None,
) -> None:
    """Serves until a signal. Calls `announce` with the address once requests are accepted; reads the settings again
    from `source`. `prepare` may change the application before it serves. Raises SettingsError."""
    _check_workers(settings.server)
    raise_limit()
    _fetch_schemas(settings)
    app = _checked_app(settings, insecure)
    prepare(app)
    with contextlib.closing(_bind(settings.server)) as listener:

        def ready() -> None:
            log_start(settings, source, address(listener))
            _log_models(app.gateway_state)
            announce(address(listener))

        if settings.server.workers == 1:
            _run(app, listener, source, ready)
            return
        # Forks: a system without that cannot even import it.
        from gateway.server.process.workers import Supervisor

        supervisor = Supervisor(settings, source)
        worker = supervisor.run(ready)
        if worker is not None:
            try:
                _run(_checked_app(worker.settings, insecure), listener, source, worker.ready, worker)
            finally:
                worker.folder.release()
        elif supervisor.failed:
            raise _not_started()


def _bind(server: ServerSettings) -> socket.socket:
    """Returns a listening socket. Raises SettingsError, which names what answers at an address that is taken."""
    try:
        return bind(server)
    except AddressInUse as error:
        # Only here: a start that succeeds needs none of it.
        from gateway.discovery.identify import identify

        occupant = asyncio.run(identify(local_url(server.host, server.port)))
        what = f". What listens there is {occupant.title}" if occupant is not None else ""
        raise SettingsError(f"{error.message}{what}. Choose another port with --port or server.port") from error


def _check_workers(server: ServerSettings) -> None:
    if server.workers > 1 and not hasattr(os, "fork"):
        raise SettingsError(
            f"server.workers is {server.workers}, but this system can run 1 worker only: it has no fork"
        )


def _fetch_schemas(settings: Settings) -> None:
    """Asks the backends whose schema comes from reflection. Raises SettingsError where one without a cache does not
    answer."""
    if any(map(reflection_cache, settings.backends.values())):
        # These lines hold no text of a request, and so no secret.
        with logging_to(settings.log, str):
            asyncio.run(update_caches(settings.backends))


def _checked_app(settings: Settings, insecure: bool) -> Gateway:
    app = create_app(settings)
    app.gateway_state.check_exposure(insecure)
    return app


def _run(
    app: Gateway,
    listener: socket.socket,
    source: SettingsSource | None,
    on_ready: Callable[[], None],
    worker: "Worker | None" = None,
) -> None:
    """Serves in this process, until a signal."""
    gateway_state = app.gateway_state
    server = GatewayServer(app, source=source, worker=worker)

    def settled() -> None:
        _settle()
        on_ready()

    server.on_ready = settled
    with logging_to(gateway_state.settings.log, gateway_state.redact) as log:
        gateway_state.metrics.log_drops.set_function(lambda: log.dropped)
        _share(gateway_state, worker)
        if worker is None or worker.number == 1:
            _warn(gateway_state.settings.server)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(server, listener))
        if log.dropped:
            LOGGER.warning("%d log lines were dropped", log.dropped)
        if worker is None and server.started:
            log_end()
    gateway_state.show()
    if not server.started:
        raise _not_started()


def _warn(server: ServerSettings) -> None:
    """Logs a warning for a limit that is less effective than it states."""
    if (server.max_connections or 0) > default_connections():
        LOGGER.warning(
            "server.max_connections is %d, but %d descriptors are enough for %d clients with a backend each",
            server.max_connections,
            most_descriptors(),
            default_connections(),
        )
    if not HAS_HANG_UP:
        LOGGER.warning(
            "this system has no SIGHUP: %s",
            "settings are read again only when their file changes"
            if server.reload
            else "with server.reload false, settings are read only at the start",
        )


def _log_models(gateway_state: GatewayState) -> None:
    """Logs which limits apply to which model's history; or that no model can be requested."""
    if gateway_state.settings.models:
        LOGGER.info("limits of each model's history: %s", gateway_state.backends.limits)
        for sentence in cut_before_summary(gateway_state.settings.models):
            LOGGER.warning("%s", sentence)
        if gateway_state.answers.lost_between_workers:
            LOGGER.warning(
                "no response is stored, for each of the %d workers has a memory of its own: set state.store",
                gateway_state.settings.server.workers,
            )
    else:
        LOGGER.warning("the settings define no models: every chat request gets status 404; see docs/settings.md")


def _share(gateway_state: GatewayState, worker: "Worker | None") -> None:
    """Connects this process to the other workers, and to all processes that count the usage of keys with it."""
    server = gateway_state.settings.server
    if worker is not None:
        gateway_state.stores.measures_file = worker.number == 1
        gateway_state.worker_metrics = WorkerMetrics(worker.folder.path, worker.name)
        if gateway_state.inspector is not None:
            gateway_state.inspector.join(worker.folder.path, worker.number, server.workers)
        gateway_state.event_bus.show_first(
            "partial", {"worker": worker.number, "workers": server.workers, "shows": PARTIAL}
        )
    gateway_state.share_limits(worker and worker.folder.path)


def _not_started() -> SettingsError:
    return SettingsError("the gateway could not start; its log states the cause")


async def _serve(server: GatewayServer, listener: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(LoopExceptionHandler())
    await server.serve([listener])


def _settle() -> None:
    """Tunes the interpreter for a server. The garbage collector skips objects that live as long as the process, and
    runs less often for short-lived ones: with Python's own thresholds it took a fifth of a request's time. A thread
    that decodes a large request yields sooner to the loop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.001)


def _config(app: Gateway) -> uvicorn.Config:
    server = app.gateway_state.settings.server
    return uvicorn.Config(
        app.asgi,
        http=http_protocol(
            server.header_timeout_s,
            # This setting may change with a reload.
            lambda: app.gateway_state.settings.server.write_timeout_s,
            server.max_connections or default_connections(),
            last_for_clients(),
            app.gateway_state.dialects.default.encode_error,
        ),
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        # Our own drain ends running requests; this timeout covers those that do not end even then.
        timeout_graceful_shutdown=int(server.graceful_shutdown_timeout_s) + 3,
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:  # on Windows, and without CPython
        return None
    return uvloop.new_event_loop
