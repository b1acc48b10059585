"""Settings -> everything the routes share, alive while the gateway runs."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.errors import ServerShutdown, SettingsError
from gateway.server.admission import Admission
from gateway.server.backends import Backends
from gateway.server.door import LOCAL_NAMES, Hosts, is_loopback
from gateway.server.feed import Feed
from gateway.server.keys import check_names, load_keys
from gateway.server.metrics import Metrics
from gateway.server.transport import Transport
from gateway.server.watch import Sweeper
from gateway.settings import Settings


class Services:
    """Built before the gateway binds, so that a wrong setting is told at once. Raises SettingsError."""

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        server = settings.server
        self.settings = settings
        self.backends = Backends(settings)
        self.transport = Transport(int(settings.limits.max_response_mb * 2**20))
        self.sweeper = Sweeper()
        self.feed = Feed()
        self.metrics = Metrics()
        self.metrics.count("gateway_open_streams", by=0)
        self.keys = load_keys(server, environ)
        check_names(settings, self.keys)
        self.admission = Admission(time.monotonic)
        self.admission.change(server.max_requests, settings.keys)
        self.max_body = int(server.max_body_mb * 2**20)
        self.hosts = Hosts((*LOCAL_NAMES, *server.allowed_hosts) if is_loopback(server.host) else None)
        self.created = int(time.time())
        self.metrics.read("gateway_running_requests", lambda: self.sweeper.size)
        self.ready = False
        self.draining = False

    def now(self) -> float:
        """The monotonic clock of all deadlines."""
        return asyncio.get_running_loop().time()

    def check_exposure(self, insecure: bool) -> None:
        """Raises SettingsError when the gateway would be open to others than this machine."""
        server = self.settings.server
        if self.keys or insecure or is_loopback(server.host):
            return
        variable = server.api_keys_env or "DRAGOMAN_API_KEYS"
        raise SettingsError(
            f"binding to {server.host} without a key would let everybody in: set {variable} to the clients' keys, "
            "name a server.api_keys_file, or say --insecure-no-key"
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the transport and the demo backends."""
        async with self.transport, self.backends.running():
            self.ready = True
            try:
                yield
            finally:
                self.ready = False

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


def shutdown() -> ServerShutdown:
    """What a request hears that cannot be finished any more."""
    return ServerShutdown("The gateway is shutting down.", headers={"retry-after": "1", "connection": "close"})
