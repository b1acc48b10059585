"""Chooses the store that a request may use: by the settings of its key, and by what its client asks for."""

import asyncio
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.open_store import open_store
from gateway.server.state.request_store import RequestStore
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.settings import KeySettings, Settings

# The client's choice for one request: `off` remembers nothing of it, and puts nothing remembered into it.
HEADER: Final = b"x-dragoman-state"
_DEFAULT: Final = KeySettings()


class Stores:
    """The store that the settings name, and the memory of this worker for the keys whose contents must stay there."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        on_evict = metrics.state_evictions.inc
        self.shared = GuardedStore(open_store(settings.state, on_evict), metrics)
        self.memory = self.shared
        if self.shared.name != MemoryStore.name:
            self.memory = GuardedStore(MemoryStore(int(settings.state.max_mb * 2**20), on_evict), metrics)
        self._settings = settings

    def change(self, settings: Settings) -> None:
        """Applies other settings of keys, and another deadline, from the next request on."""
        self._settings = settings

    def of(self, context: RequestContext) -> RequestStore | None:
        """Returns the store of a request; None when nothing may be remembered of it. Raises InvalidRequest 400 for an
        unknown value of the header."""
        asked = context.headers.get(HEADER, b"on").strip().lower()
        if asked not in (b"on", b"off"):
            raise InvalidRequest("The header x-dragoman-state must be on or off.", param=HEADER.decode())
        keys = self._settings.keys
        kept = (keys.get(context.key) or keys.get(DEFAULT_CLIENT) or _DEFAULT).state
        if asked == b"off" or kept == "off":
            return None
        store = self.memory if kept == "memory" else self.shared
        return RequestStore(store, context.key, self._settings.state.deadline_ms / 1000)

    async def aclose(self) -> None:
        """Closes the stores."""
        await asyncio.gather(*(store.aclose() for store in {self.shared, self.memory}))
