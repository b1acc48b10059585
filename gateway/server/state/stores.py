"""Chooses the store that a request may use, by the settings of its key and by what its client asks for, and gives the
request its view of it: under the request's tenant, and within one deadline for all reads.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.state.guarded_store import GuardedStore, patience_s
from gateway.server.state.memory import MemoryStore
from gateway.server.state.open_store import open_store
from gateway.server.state.store import Entry, Space, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.settings import KeySettings, Settings

SLOW: Final = Notice(
    "state",
    "failed",
    "STORE_SLOW",
    "the store did not answer in time; the request is served without what it remembers",
    level="debug",
)
DOWN: Final = Notice(
    "state",
    "failed",
    "STORE_DOWN",
    "the store cannot be used; the request is served without what it remembers",
    level="debug",
)

# The client's choice for one request: `off` remembers nothing of it, and puts nothing remembered into it.
HEADER: Final = b"x-dragoman-state"
# The time between two measurements of what the stores hold, which also remove the expired entries.
MEASURE_S: Final = 15.0
_DEFAULT: Final = KeySettings()

T = TypeVar("T")


class RequestStore:
    """`store` is for work that outlives the request; `tenant` owns everything that the request reads and writes.
    `failed`: a read has failed, so that what seems to be missing may be there. All reads together may take `deadline_s`
    seconds of the store's time."""

    def __init__(self, store: GuardedStore, tenant: str, deadline_s: float) -> None:
        self.store = store
        self.tenant = tenant
        self.failed = False
        self.deadline_s = deadline_s
        self._left_s = deadline_s
        self._notices: list[Notice] = []

    async def get(self, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """Returns the entries in the order of the keys. Where the store fails, or all reads of this request together
        take longer than their deadline, they are missing; `take_notices` says so."""
        if not keys:
            return []
        found = await self._within(lambda left_s: self.store.get(self.tenant, space, keys, within_s=left_s))
        return [None] * len(keys) if found is None else found

    async def epoch(self) -> bytes | None:
        """Returns the epoch of the tenant; None where `get` would find nothing."""
        return await self._within(lambda left_s: self.store.epoch(self.tenant, within_s=left_s))

    def take_notices(self) -> list[Notice]:
        """Returns the notices that were not taken yet."""
        notices, self._notices = self._notices, []
        return notices

    async def _within(self, read: Callable[[float], Awaitable[T]]) -> T | None:
        """Reads within what is left of the deadline; None: the store fails."""
        if self._left_s <= 0:
            self._note(SLOW)
            return None
        clock = self.store.clock
        began = clock.now
        try:
            return await read(self._left_s)
        except StoreUnavailable as failure:
            self._note(SLOW if failure.reason == "slow" else DOWN)
            return None
        finally:
            self._left_s -= clock.now - began

    def _note(self, notice: Notice) -> None:
        self.failed = True
        if notice not in self._notices:
            self._notices.append(notice)


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
        kept = self._key_settings(context).state
        if asked == b"off" or kept == "off":
            return None
        store = self.memory if kept == "memory" else self.shared
        return RequestStore(store, context.key, self._settings.state.deadline_ms / 1000)

    def remembers(self, context: RequestContext) -> bool:
        """Returns whether anything may be remembered of a request, in memory at least."""
        asked = context.headers.get(HEADER, b"on").strip().lower()
        return asked == b"on" and self._key_settings(context).state != "off"

    def _key_settings(self, context: RequestContext) -> KeySettings:
        keys = self._settings.keys
        return keys.get(context.key) or keys.get(DEFAULT_CLIENT) or _DEFAULT

    def tick(self) -> None:
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
