"""A memory store that fails in the way it is told to."""

import asyncio
from collections.abc import Sequence

from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Entry, Failure, Put, Space, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics


class FaultyStore(MemoryStore):
    """`fault` is how reads, writes and pings fail; None: they work. `slow` hangs for ever. `asked` counts them."""

    def __init__(self) -> None:
        super().__init__(2**20, lambda *_: None)
        self.fault: Failure | None = None
        self.asked = 0

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        await self._fail()
        return await super().get(tenant, space, keys)

    async def put(self, tenant: str, *puts: Put) -> bool:
        await self._fail()
        return await super().put(tenant, *puts)

    async def ping(self) -> None:
        await self._fail()

    async def _fail(self) -> None:
        self.asked += 1
        if self.fault == "slow":
            await asyncio.Event().wait()
        elif self.fault is not None:
            raise StoreUnavailable(self.fault, "as the test wants")


def guarded(store: MemoryStore) -> GuardedStore:
    return GuardedStore(store, Metrics())
