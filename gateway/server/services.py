"""Settings -> everything the routes share, alive while the gateway runs."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.errors import ServerShutdown, SettingsError
from gateway.server.admission import Admission
from gateway.server.backends import Backends
from gateway.server.board import Board
from gateway.server.demos import Demos
from gateway.server.door import LOCAL_NAMES, Hosts, is_loopback
from gateway.server.feed import Feed
from gateway.server.fixed import keep_fixed
from gateway.server.keys import Keys, check_names, load_keys
from gateway.server.log import LEVELS, LOGGER
from gateway.server.metrics import Metrics, Snapshot
from gateway.server.tracing import open_tracing
from gateway.server.transport import Transport
from gateway.server.watch import Sweeper
from gateway.settings import ServerSettings, Settings


class Services:
    """Built before the gateway binds, so that a wrong setting is told at once. Raises SettingsError.

    A request takes what it needs from here when it begins, so that `change` touches only those that come later."""

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._exposed = True
        self.demos = Demos()
        self.transport = Transport(int(settings.limits.max_response_mb * 2**20))
        self.sweeper = Sweeper()
        self.feed = Feed(self.redact)
        self.metrics = Metrics()
        self.metrics.count("gateway_open_streams", by=0)
        self.metrics.read("gateway_running_requests", lambda: self.sweeper.size)
        self.metrics.read("gateway_workers", lambda: 1)
        self.admission = Admission(time.monotonic)
        self.metrics.read("gateway_store_failures_total", lambda: self.admission.store.failures)
        self.tracing = open_tracing(settings.tracing, environ)
        self.board: Board | None = None
        self.created = int(time.time())
        self.ready = False
        self.draining = False
        self._use(settings, Backends(settings), self._keys(settings))

    def redact(self, text: str) -> str:
        """The text without any secret that is sent to backends. (Of clients' keys only digests are known.)"""
        text = self.backends.redact(text)
        return text if self.tracing is None else self.tracing.redact(text)

    def check_exposure(self, insecure: bool) -> None:
        """Raises SettingsError when the gateway would be open to others than this machine."""
        self._exposed = insecure
        _check_exposure(self.settings.server, self.keys, insecure)

    async def change(self, settings: Settings) -> tuple[str, ...]:
        """Use other settings from the next request on; running ones finish on the old ones. Returns the names of
        what would need a restart and stays. Raises SettingsError, and then nothing has changed."""
        before = self.settings
        settings, kept = keep_fixed(before, settings)
        keys = self._keys(settings)
        _check_exposure(settings.server, keys, self._exposed)
        backends = Backends(settings, self.backends)
        await backends.start(self.demos)
        self._use(settings, backends, keys)
        if self.tracing is not None and settings.tracing is not None:
            self.tracing.change(settings.tracing)
        if settings.log.level != before.log.level:
            LOGGER.setLevel(LEVELS[settings.log.level])
        return kept

    def _keys(self, settings: Settings) -> Keys:
        keys = load_keys(settings.server, self._environ)
        check_names(settings, keys)
        return keys

    def _use(self, settings: Settings, backends: Backends, keys: Keys) -> None:
        """Nothing here can fail, and no request can begin in its midst."""
        server = settings.server
        self.settings = settings
        self.backends = backends
        self.keys = keys
        self.hosts = Hosts((*LOCAL_NAMES, *server.allowed_hosts) if is_loopback(server.host) else None)
        self.admission.change(server.max_requests, settings.keys)
        self.max_body = int(server.max_body_mb * 2**20)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the transport and the demo backends, and let traces be sent."""
        async with self.transport, self.demos, self._traced():
            await self.backends.start(self.demos)
            self.ready = True
            try:
                yield
            finally:
                self.ready = False

    @asynccontextmanager
    async def _traced(self) -> AsyncIterator[None]:
        if self.tracing is None:
            yield
            return
        exporter = self.tracing.start(self.redact)
        self.metrics.read("gateway_spans_total", lambda: exporter.exported)
        self.metrics.read("gateway_span_drops_total", lambda: exporter.dropped)
        try:
            yield
        finally:
            await asyncio.to_thread(self.tracing.stop)

    def snapshot(self) -> Snapshot:
        """The metrics now; with several workers, of all of them."""
        own = self.metrics.snapshot()
        return own if self.board is None else self.board.total(own)

    def settle(self) -> None:
        """What has to be done about once a second."""
        self.admission.settle()
        self.show()

    def show(self) -> None:
        """Let the other workers see the metrics of this one."""
        if self.board is not None:
            self.board.show(self.metrics.snapshot())

    def drain(self) -> None:
        """Take no new work; end what is still running after `drain_s`."""
        if not self.draining:
            self.draining = True
            self.ready = False
            self.feed.close()
            asyncio.get_running_loop().call_later(self.settings.server.drain_s, self.stop)

    def stop(self) -> None:
        """End what is running now; every client is told."""
        self.sweeper.interrupt_all(shutdown)


def _check_exposure(server: ServerSettings, keys: Keys, insecure: bool) -> None:
    if keys or insecure or is_loopback(server.host):
        return
    variable = server.api_keys_env or "DRAGOMAN_API_KEYS"
    raise SettingsError(
        f"binding to {server.host} without a key would let everybody in: set {variable} to the clients' keys, "
        "name a server.api_keys_file, or say --insecure-no-key"
    )


def shutdown() -> ServerShutdown:
    """What a request hears that cannot be finished any more."""
    return ServerShutdown("The gateway is shutting down.", headers={"retry-after": "1", "connection": "close"})
