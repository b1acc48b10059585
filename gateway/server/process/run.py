"""Runs a gateway from settings, in this process or in several, until a signal ends it."""

import asyncio
import contextlib
import gc
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gateway.core.errors import SettingsError
from gateway.server.api.app import Gateway, create_app
from gateway.server.api.gateway_state import GatewayState
from gateway.server.log.logger import LOGGER, logging_to
from gateway.server.log.throttle import LogThrottle
from gateway.server.process.gateway_server import HAS_HANG_UP, GatewayServer
from gateway.server.process.lifecycle_log import log_end, log_start
from gateway.server.process.listener import AddressInUse, address, bind
from gateway.server.process.malloc import keep_freed_memory
from gateway.server.state.state_folder import StateKeys
from gateway.server.telemetry.worker_metrics import WorkerMetrics
from gateway.server.upstream.fd_limits import default_connections, most_descriptors, raise_limit
from gateway.server.upstream.schema_cache import update_caches
from gateway.settings import ServerSettings, Settings
from gateway.settings.compression import cut_before_summary
from gateway.settings.descriptor_files import reflection_cache
from gateway.settings.local_url import local_url
from gateway.settings.source import SettingsSource

if TYPE_CHECKING:
    from gateway.server.process.workers import Worker

PARTIAL: Final = "only the requests that this worker serves"


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
    state_keys = app.gateway_state.state_keys
    # Once, before there are workers: each of them must open what another one has sealed.
    with logging_to(settings.log, str):
        state_keys.open()
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
        import gateway.server.api.routes  # noqa: F401 (loaded once, in memory that the workers share)
        from gateway.server.process.workers import Supervisor

        gc.enable()
        supervisor = Supervisor(settings, source)
        worker = supervisor.run(ready)
        if worker is not None:
            try:
                _run(_checked_app(worker.settings, insecure, state_keys), listener, source, worker.ready, worker)
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


def _checked_app(settings: Settings, insecure: bool, state_keys: StateKeys | None = None) -> Gateway:
    app = create_app(settings, state_keys)
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
    gateway_state.source = source
    server = GatewayServer(app, source=source, worker=worker)

    def ready() -> None:
        _tune()
        on_ready()

    server.on_ready = ready
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
    gateway_state.publish_metrics()
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
        for sentence in cut_before_summary(gateway_state.backends.entries):
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
            folder = worker.folder
            gateway_state.inspector.join(folder.path, worker.number, server.workers, folder.seed)
        gateway_state.event_bus.show_first(
            "partial", {"worker": worker.number, "workers": server.workers, "shows": PARTIAL}
        )
    gateway_state.share_limits(worker and worker.folder.path)


def _not_started() -> SettingsError:
    return SettingsError("the gateway could not start; its log states the cause")


async def _serve(server: GatewayServer, listener: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(LoopExceptionHandler())
    await server.serve([listener])


def _tune() -> None:
    """Tunes the interpreter for a server. The garbage collector skips objects that live as long as the process, and
    runs less often for short-lived ones: with Python's own thresholds it took a fifth of a request's time. A thread
    that decodes a large request yields sooner to the loop, and its memory is kept for the next one."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    sys.setswitchinterval(0.001)
    keep_freed_memory()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:  # on Windows, and without CPython
        return None
    return uvloop.new_event_loop


class LoopExceptionHandler:
    """Logs uncaught exceptions of an event loop, at most one line a second: one cause may raise them without end, since
    asyncio's own loop reports every connection that it could not accept."""

    def __init__(self) -> None:
        self._throttle = LogThrottle()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # as asyncio calls it
        count = self._throttle.count(loop.time())
        if count:
            error: BaseException | None = context.get("exception")
            LOGGER.error(
                "exception in the event loop (%d since the last such line): %s",
                count,
                context["message"],
                exc_info=error,
            )
