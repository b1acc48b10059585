"""Seals what a store on disk or on a server keeps: entries are encrypted or checked, bound to tenant, epoch and name.

A value that cannot be read is a miss, is counted, and stays: another version of the gateway or one with another key may
have written it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.server.state.sealing import Scope, Seal, Unreadable, UnreadableReason
from gateway.server.state.store import Entry, Lease, Put, Space, StateStore, StoreStats

# From this size on, compression would hold up the event loop for about a millisecond.
THREAD_FROM: Final = 64 * 1024

# Called for each value that could not be read.
OnUnreadable: TypeAlias = Callable[[Space, UnreadableReason], None]


class SealedStore:
    """See `StateStore`."""

    def __init__(self, store: StateStore, seal: Seal, on_unreadable: OnUnreadable) -> None:
        self.name = store.name
        self.at_once = store.at_once
        self._store = store
        self._seal = seal
        self._on_unreadable = on_unreadable

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """See `StateStore`."""
        found = await self._store.get(tenant, space, keys)
        if found.count(None) == len(found):
            return found
        # After the entries: a store that has just been asked knows the epoch.
        scope = await self._scope(tenant)
        return [
            None if entry is None else await self._open(scope, space, key, entry)
            for key, entry in zip(keys, found, strict=True)
        ]

    async def put(self, tenant: str, *puts: Put) -> bool:
        """See `StateStore`."""
        scope = await self._scope(tenant)
        return await self._store.put(tenant, *[await self._sealed(scope, put) for put in puts])

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """See `StateStore`."""
        await self._store.extend(tenant, space, keys, ttl_s)

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        await self._store.delete(tenant, space, keys)

    async def epoch(self, tenant: str) -> bytes:
        """See `StateStore`."""
        return await self._store.epoch(tenant)

    async def forget(self, tenant: str) -> None:
        """See `StateStore`."""
        await self._store.forget(tenant)

    async def purge(self) -> None:
        """See `StateStore`."""
        await self._store.purge()

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """See `StateStore`."""
        return await self._store.acquire(tenant, name, ttl_s)

    async def renew(self, lease: Lease) -> bool:
        """See `StateStore`."""
        return await self._store.renew(lease)

    async def release(self, lease: Lease) -> None:
        """See `StateStore`."""
        await self._store.release(lease)

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """See `StateStore`."""
        scope = await self._scope(lease.tenant)
        return await self._store.commit(lease, [await self._sealed(scope, put) for put in puts])

    async def stats(self) -> StoreStats:
        """See `StateStore`."""
        return await self._store.stats()

    async def ping(self) -> None:
        """See `StateStore`."""
        await self._store.ping()

    async def aclose(self) -> None:
        """See `StateStore`."""
        await self._store.aclose()

    async def _scope(self, tenant: str) -> Scope:
        return Scope(tenant, await self._store.epoch(tenant))

    async def _sealed(self, scope: Scope, put: Put) -> Put:
        work = (scope, _name(put.space, put.key), put.data)
        large = len(put.data) >= THREAD_FROM
        data = await asyncio.to_thread(self._seal.seal, *work) if large else self._seal.seal(*work)
        return msgspec.structs.replace(put, data=data)

    async def _open(self, scope: Scope, space: Space, key: bytes, entry: Entry) -> Entry | None:
        work = (scope, _name(space, key), entry.data)
        large = len(entry.data) >= THREAD_FROM
        try:
            data = await asyncio.to_thread(self._seal.open, *work) if large else self._seal.open(*work)
        except Unreadable as unreadable:
            self._on_unreadable(space, unreadable.reason)
            return None
        return Entry(data, entry.version)


def _name(space: Space, key: bytes) -> bytes:
    return space.encode() + b":" + key
