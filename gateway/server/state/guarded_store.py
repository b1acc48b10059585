"""Guards a store: every operation has a deadline, a failing store is left alone for a while, and all of it is counted.

So a store that is slow, down, full or wrong costs a request at most its deadline, and after three failures nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from gateway.server.state.circuit import Circuit
from gateway.server.state.store import Entry, Lease, Put, Space, StateStore, StoreStats, StoreUnavailable
from gateway.server.state.write_queue import Write, WriteQueue
from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.metrics import Metrics

# The deadline of an operation that no client waits for, and of the writes of stored responses.
DEADLINE_S: Final = 0.25
# Deletions and counts of everything may take longer.
LONG_S: Final = 10.0
PING_S: Final = 1.0
# Minimum time between two warnings about a failing store.
QUIET_S: Final = 60.0

T = TypeVar("T")
EntryOperation: TypeAlias = Literal["get", "put", "extend", "delete"]
OtherOperation: TypeAlias = Literal[
    "epoch", "forget", "purge", "acquire", "renew", "release", "commit", "stats", "ping"
]
Operation: TypeAlias = EntryOperation | OtherOperation


class GuardedStore:
    """See `StateStore`."""

    def __init__(self, store: StateStore, metrics: Metrics) -> None:
        self.name = store.name
        self._store = store
        self._metrics = metrics
        self._circuit = Circuit()
        self._writes = WriteQueue()
        self._reopening: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        self._warned = False

    async def get(
        self, tenant: str, space: Space, keys: Sequence[bytes], within_s: float = DEADLINE_S
    ) -> list[Entry | None]:
        """See `StateStore`. The reply must come `within_s` seconds."""
        found = await self._run("get", space, lambda: self._store.get(tenant, space, keys), within_s)
        misses = found.count(None)
        self._count("get", space, "miss", by=misses)
        self._count("get", space, "hit", by=len(found) - misses)
        return found

    async def put(self, tenant: str, put: Put) -> bool:
        """See `StateStore`."""
        stored = await self._run("put", put.space, lambda: self._store.put(tenant, put))
        self._count("put", put.space, "done" if stored else "conflict")
        return stored

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """See `StateStore`."""
        await self._run("extend", space, lambda: self._store.extend(tenant, space, keys, ttl_s))
        self._count("extend", space, "done")

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        await self._run("delete", space, lambda: self._store.delete(tenant, space, keys))
        self._count("delete", space, "done")

    async def epoch(self, tenant: str, within_s: float = DEADLINE_S) -> bytes:
        """See `StateStore`. The reply must come `within_s` seconds."""
        return await self._done("epoch", lambda: self._store.epoch(tenant), within_s)

    async def forget(self, tenant: str) -> None:
        """See `StateStore`."""
        await self._done("forget", lambda: self._store.forget(tenant), LONG_S)

    async def purge(self) -> None:
        """See `StateStore`."""
        await self._done("purge", self._store.purge, LONG_S)

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """See `StateStore`."""
        lease = await self._done("acquire", lambda: self._store.acquire(tenant, name, ttl_s))
        self._metrics.leases.inc("busy" if lease is None else "acquired")
        return lease

    async def renew(self, lease: Lease) -> bool:
        """See `StateStore`."""
        renewed = await self._done("renew", lambda: self._store.renew(lease))
        self._metrics.leases.inc("renewed" if renewed else "lost")
        return renewed

    async def release(self, lease: Lease) -> None:
        """See `StateStore`."""
        await self._done("release", lambda: self._store.release(lease))
        self._metrics.leases.inc("released")

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """See `StateStore`."""
        committed = await self._done("commit", lambda: self._store.commit(lease, puts))
        self._metrics.leases.inc("committed" if committed else "refused")
        return committed

    async def stats(self) -> StoreStats:
        """See `StateStore`."""
        return await self._done("stats", self._store.stats, LONG_S)

    async def ping(self) -> None:
        """See `StateStore`."""
        await self._done("ping", self._store.ping, PING_S)

    async def aclose(self) -> None:
        """Waits shortly for the writes that are left, then closes the store."""
        await self._writes.aclose()
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.wait((self._reopening,))
        await self._store.aclose()

    def write_later(self, write: Write) -> bool:
        """Runs a write of this store after those that wait already, while nobody waits for it. Returns False, and drops
        it, when too many wait."""
        added = self._writes.add(write)
        if not added:
            self._metrics.state_operations.inc("-", "write_later", "dropped")
        return added

    async def written(self) -> None:
        """Waits until no write is left that was to be made later."""
        await self._writes.join()

    async def _done(self, op: OtherOperation, call: Callable[[], Awaitable[T]], within_s: float = DEADLINE_S) -> T:
        """Runs an operation that has no space."""
        result = await self._run(op, "-", call, within_s)
        self._count(op, "-", "done")
        return result

    async def _run(
        self, op: Operation, space: Space | Literal["-"], call: Callable[[], Awaitable[T]], within_s: float = DEADLINE_S
    ) -> T:
        if self._circuit.open:
            self._count(op, space, "skipped")
            raise StoreUnavailable("down", "it has failed and is not asked until it answers again")
        began = time.monotonic()
        try:
            async with asyncio.timeout(within_s):
                result = await call()
        except TimeoutError:
            failure = StoreUnavailable("slow", f"no reply to {op} within {within_s * 1000:.0f} ms")
            self._fail(op, space, failure)
            raise failure from None
        except StoreUnavailable as failure:
            self._fail(op, space, failure)
            raise
        self._circuit.succeed()
        self._metrics.state_seconds.observe(time.monotonic() - began, op)
        return result

    def _count(self, op: Operation, space: Space | Literal["-"], outcome: str, by: int = 1) -> None:
        if by:
            self._metrics.state_operations.inc(space, op, outcome, by=by)

    def _fail(self, op: Operation, space: Space | Literal["-"], failure: StoreUnavailable) -> None:
        self._count(op, space, failure.reason)
        self._warn(failure)
        # A full store can be read, and the next write may be smaller.
        if failure.reason != "full" and self._circuit.fail():
            self._reopening = asyncio.create_task(self._reopen())

    def _warn(self, failure: StoreUnavailable) -> None:
        now = time.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET_S
            self._warned = True
            LOGGER.warning("the store %s fails: %s; requests are served without what it remembers", self.name, failure)

    async def _reopen(self) -> None:
        """Pings the store until it answers."""
        while self._circuit.open:
            await asyncio.sleep(self._circuit.next_pause())
            try:
                async with asyncio.timeout(PING_S):
                    await self._store.ping()
            except (StoreUnavailable, TimeoutError):
                continue
            self._circuit.succeed()
        if self._warned:
            self._warned = False
            LOGGER.info("the store %s is used again", self.name)
