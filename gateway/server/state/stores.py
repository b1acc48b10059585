"""Chooses the store that a request may use: by the settings of its key, and by what its client asks for."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.state.guarded_store import GuardedStore, patience_s
from gateway.server.state.memory import MemoryStore
from gateway.server.state.open_store import open_store
from gateway.server.state.request_store import RequestStore
from gateway.server.state.store import Space, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.settings import KeySettings, Settings

# The client's choice for one request: `off` remembers nothing of it, and puts nothing remembered into it.
HEADER: Final = b"x-dragoman-state"
# The time between two measurements of what the stores hold, which also remove the expired entries.
MEASURE_S: Final = 15.0
_DEFAULT: Final = KeySettings()


class Stores:
    """The store that the settings name, and the memory of this worker for the keys whose contents must stay there."""

    def __init__(self, settings: Settings, metrics: Metrics, environ: Mapping[str, str] = os.environ) -> None:
        on_evict = metrics.state_evictions.inc
        space_bytes: Mapping[Space, int] = {
            "rsp": int(settings.responses.max_mb * 2**20),
            "ops": int(settings.keeper.max_mb * 2**20),
        }
        waits_s = patience_s(settings.state)
        self.shared = GuardedStore(open_store(settings.state, metrics, environ, space_bytes), metrics, waits_s)
        self.memory = self.shared
        if self.shared.name != MemoryStore.name:
            memory = MemoryStore(int(settings.state.max_mb * 2**20), on_evict, space_bytes)
            self.memory = GuardedStore(memory, metrics, waits_s)
        self._settings = settings
        self._metrics = metrics
        # Of the workers that share a file, one measures it. A server's size is not for us to measure.
        self.measures_file = True
        self._measuring: asyncio.Task[None] | None = None
        self._measured = float("-inf")

    def change(self, settings: Settings) -> None:
        """Applies other settings of keys, and another deadline, from the next request on."""
        self._settings = settings
        self.shared.deadline_s = self.memory.deadline_s = patience_s(settings.state)

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

    def settle(self) -> None:
        """Does the work that is due from time to time; called about once a second."""
        now = time.monotonic()
        if now - self._measured >= MEASURE_S:
            self._measured = now
            self._measuring = asyncio.create_task(self._measure())

    async def aclose(self) -> None:
        """Closes the stores."""
        if self._measuring is not None:
            self._measuring.cancel()
        await asyncio.gather(*(store.aclose() for store in {self.shared, self.memory}))

    async def _measure(self) -> None:
        sizes = Counter[tuple[str]]()
        for store in {self.shared, self.memory}:
            if store.name == MemoryStore.name or (self.measures_file and store.name.startswith("sqlite:")):
                try:
                    stats = await store.stats()
                except StoreUnavailable:
                    continue
                for used in stats.usage:
                    sizes[(used.space,)] += used.bytes
        self._metrics.state_bytes.replace(sizes)
