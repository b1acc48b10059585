"""Serves in one process: uvicorn with our HTTP protocol, which drains on a signal and reads the settings again."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn

from gateway.server.api.app import Gateway
from gateway.server.http.protocol import WebSockets, http_protocol
from gateway.server.log.logger import LOGGER
from gateway.server.process.lifecycle_log import log_stop
from gateway.server.process.settings_reload import Reloader
from gateway.server.upstream.fd_limits import default_connections, last_for_clients
from gateway.settings.source import SettingsSource

if TYPE_CHECKING:
    from gateway.server.process.workers import Worker

# Windows has SIGBREAK in addition, and sends it to a program whose window is closed.
SIGNALS: Final = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGBREAK"))
HAS_HANG_UP: Final = hasattr(signal, "SIGHUP")
BEAT_S: Final = 1
# An idle connection of a client; deploy/nginx.conf closes its own earlier.
KEEP_ALIVE_S: Final = 75
# The time in which clients get an error when the gateway stops at once.
LAST_S: Final = 0.5


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
            self._state.tick()
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
            reloader.request_reload()

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


def _config(app: Gateway) -> uvicorn.Config:
    state = app.gateway_state
    server = state.settings.server
    return uvicorn.Config(
        app.asgi,
        http=http_protocol(
            server.header_timeout_s,
            # This setting may change with a reload.
            lambda: state.settings.server.write_timeout_s,
            server.max_connections or default_connections(),
            last_for_clients(),
            state.dialects.default.encode_error,
            WebSockets(state.dialects.websockets.__contains__, lambda: state.max_body),
        ),
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        # Our own drain ends running requests; this timeout covers those that do not end even then.
        timeout_graceful_shutdown=int(server.graceful_shutdown_timeout_s) + 3,
    )
