"""Puts a store of entries behind its guard, and runs writes in the background: in their order and one at a time, or at
once where a client waits.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from gateway.server.state.guard import PING_S, AnySpace, Guard
from gateway.server.state.store import Entry, Lease, Put, Space, StateStore, StoreStats, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings

MOST: Final = 256
# The time that the writes of the last requests have when the gateway stops.
LAST_S: Final = 1.0

Write: TypeAlias = Callable[[], Awaitable[object]]

# The least deadline of an operation that no client waits for, and of stored responses, which cannot be done without.
DEADLINE_S: Final = 0.25
# Deletions and counts of everything may take longer.
LONG_S: Final = 10.0
LOSS: Final = "requests are served without what it remembers"

T = TypeVar("T")


class WriteQueue:
    """Holds at most `MOST` writes. A write may raise StoreUnavailable, which is the end of it."""

    def __init__(self) -> None:
        self._writes: deque[Write] = deque()
        self._task: asyncio.Task[None] | None = None
        self._begun: set[asyncio.Task[StoreUnavailable | None]] = set()

    def add(self, write: Write) -> bool:
        """Returns False, and drops the write, when the queue is full."""
        if len(self._writes) >= MOST:
            return False
        self._writes.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    def begin(self, write: Write) -> "asyncio.Task[StoreUnavailable | None]":
        """Runs a write at once, beside the others. Its result is the failure of the store, if there was one."""
        task = asyncio.create_task(_outcome(write))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return task

    async def join(self) -> None:
        """Waits until no write is left."""
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Waits for the writes, but no longer than `LAST_S`, and cancels the others."""
        if tasks := self._tasks():
            _, late = await asyncio.wait(tasks, timeout=LAST_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _tasks(self) -> Sequence[asyncio.Task[Any]]:
        return [*self._begun] if self._task is None else [self._task, *self._begun]

    async def _run(self) -> None:
        while self._writes:
            await _outcome(self._writes.popleft())


async def _outcome(write: Write) -> StoreUnavailable | None:
    """Returns the failure of the store, which has counted it."""
    try:
        await write()
    except StoreUnavailable as failure:
        return failure
    return None


class GuardedStore:
    """See `StateStore`. An operation has `deadline_s` seconds of the store's time where its caller gives it no other
    deadline; `clock` measures that time."""

    def __init__(self, store: StateStore, metrics: Metrics, deadline_s: float = DEADLINE_S) -> None:
        self.name = store.name
        self.at_once = store.at_once
        self.deadline_s = deadline_s
        self._store = store
        self._metrics = metrics
        self._guard = Guard(store.name, store.at_once, store.ping, LOSS, metrics)
        self.clock = self._guard.clock
        self._writes = WriteQueue()

    async def get(
        self, tenant: str, space: Space, keys: Sequence[bytes], within_s: float | None = None
    ) -> list[Entry | None]:
        """See `StateStore`. The reply must come within `within_s` seconds."""
        found = await self._run("get", space, lambda: self._store.get(tenant, space, keys), within_s)
        misses = found.count(None)
        self._guard.count("get", space, "miss", by=misses)
        self._guard.count("get", space, "hit", by=len(found) - misses)
        return found

    async def put(self, tenant: str, *puts: Put, within_s: float | None = None) -> bool:
        """See `StateStore`; all values are of one space. The reply must come within `within_s` seconds."""
        space = puts[0].space
        stored = await self._run("put", space, lambda: self._store.put(tenant, *puts), within_s)
        self._guard.count("put", space, "done" if stored else "conflict")
        return stored

    async def extend(
        self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float, within_s: float | None = None
    ) -> None:
        """See `StateStore`. The reply must come within `within_s` seconds."""
        await self._run("extend", space, lambda: self._store.extend(tenant, space, keys, ttl_s), within_s)
        self._guard.count("extend", space, "done")

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        await self._run("delete", space, lambda: self._store.delete(tenant, space, keys))
        self._guard.count("delete", space, "done")

    async def epoch(self, tenant: str, within_s: float | None = None) -> bytes:
        """See `StateStore`. The reply must come within `within_s` seconds."""
        return await self._done("epoch", lambda: self._store.epoch(tenant), within_s)

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """See `StateStore`."""
        return await self._done("epoch", lambda: self._store.forgotten(tenants))

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
        await self._guard.aclose()
        await self._store.aclose()

    def write_later(self, write: Write) -> bool:
        """Runs a write of this store in the background, after those that wait already. Returns False, and drops
        it, when too many wait."""
        added = self._writes.add(write)
        if not added:
            self._guard.count("write_later", "-", "dropped")
        return added

    async def write_now(self, write: Write, within_s: float) -> StoreUnavailable | None:
        """Runs a write of this store at once. Returns why it is not confirmed within `within_s` seconds of the store's
        time; it then goes on in the background, unless it has failed."""
        task = self._writes.begin(write)
        try:
            async with self.clock.limit(within_s):
                return await asyncio.shield(task)
        except TimeoutError:
            return StoreUnavailable("slow", f"no confirmation within {within_s * 1000:.0f} ms")

    async def written(self) -> None:
        """Waits until no write is left that was begun or is to be made later."""
        await self._writes.join()

    async def _done(self, op: str, call: Callable[[], Awaitable[T]], within_s: float | None = None) -> T:
        """Runs an operation that has no space."""
        result = await self._run(op, "-", call, within_s)
        self._guard.count(op, "-", "done")
        return result

    async def _run(
        self, op: str, space: AnySpace, call: Callable[[], Awaitable[T]], within_s: float | None = None
    ) -> T:
        return await self._guard.run(op, space, call, self.deadline_s if within_s is None else within_s)


def patience_s(state: StateSettings) -> float:
    """Returns the deadline of an operation that no client waits for, in seconds."""
    return max(DEADLINE_S, state.deadline_ms / 1000)
