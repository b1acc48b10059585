"""Keeps state in the memory of one process, bounded in bytes: the entries that were used last stay.

Where room is needed, the tenant with the most bytes loses its oldest entry, so that no tenant can displace the entries
of another one that uses less than its share. Times are of the monotonic clock: no change of the wall clock lets an
entry live longer or end sooner.
"""

import heapq
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias

import msgspec

from gateway.server.state.store import (
    EVERYONE,
    Entry,
    Lease,
    OnEvict,
    Put,
    Space,
    StoreStats,
    StoreUnavailable,
    Usage,
    first_record,
    forgotten_at,
    next_record,
)

# What an entry takes in memory besides its data: measured 600 bytes, and up to 160 in the queue of ends once more.
OVERHEAD: Final = 800
# Of the names of ended entries in the queue of ends, so many more than entries may wait for their time.
SPARE: Final = 1024

Name: TypeAlias = tuple[str, Space, bytes]


class _Stored(msgspec.Struct):
    entry: Entry
    until: float
    size: int
    used: int


class _Shelf:
    """The entries of one tenant in one space, the one used last at the end."""

    __slots__ = ("entries", "size")

    def __init__(self) -> None:
        self.entries: OrderedDict[bytes, _Stored] = OrderedDict()
        self.size = 0

    @property
    def oldest(self) -> tuple[int, bytes]:
        """When the entry was used that was not used for the longest time, and its key."""
        key, stored = next(iter(self.entries.items()))
        return stored.used, key


class _HeldLease(msgspec.Struct):
    token: int
    until: float


class MemoryStore:
    """See `StateStore`. `max_bytes` bounds all entries together, `space_bytes` those of a space; both count the
    entries' overhead."""

    name = "memory"
    at_once = 1

    def __init__(
        self,
        max_bytes: int,
        on_evict: OnEvict,
        space_bytes: Mapping[Space, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._space_bytes: Mapping[Space, int] = space_bytes or {}
        self._clock = clock
        self._shelves: dict[tuple[str, Space], _Shelf] = {}
        self._size = 0
        self._entries = 0
        self._ends: list[tuple[float, Name]] = []
        self._numbers = count(1)
        self._epochs: dict[str, bytes] = {}
        self._leases: dict[tuple[str, str], _HeldLease] = {}
        self._on_evict = on_evict

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """See `StateStore`."""
        self._expire()
        return [self._read((tenant, space, key)) for key in keys]

    async def put(self, tenant: str, *puts: Put) -> bool:
        """See `StateStore`."""
        return self._put_all(tenant, puts)

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """See `StateStore`."""
        self._expire()
        for key in keys:
            stored = self._find((tenant, space, key))
            if stored is not None:
                stored.until = self._clock() + ttl_s

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        for key in keys:
            self._remove((tenant, space, key))

    async def epoch(self, tenant: str) -> bytes:
        """See `StateStore`."""
        if tenant not in self._epochs:
            self._epochs[tenant] = first_record()
        return self._epochs[tenant]

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """See `StateStore`."""
        return [forgotten_at(self._epochs.get(tenant, b"")) for tenant in tenants]

    async def forget(self, tenant: str) -> None:
        """See `StateStore`."""
        for name in [name for name in self._names() if name[0] == tenant]:
            self._remove(name)
        self._leases = {name: held for name, held in self._leases.items() if name[0] != tenant}
        self._epochs[tenant] = next_record(time.time())

    async def purge(self) -> None:
        """See `StateStore`."""
        for name in list(self._names()):
            self._remove(name)
        self._leases.clear()
        self._epochs = {EVERYONE: next_record(time.time())}

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """See `StateStore`."""
        now = self._clock()
        held = self._leases.get((tenant, name))
        if held is not None and held.until > now:
            return None
        self._leases = {place: other for place, other in self._leases.items() if other.until > now}
        lease = Lease(tenant, name, next(self._numbers), ttl_s)
        self._leases[tenant, name] = _HeldLease(lease.token, now + ttl_s)
        return lease

    async def renew(self, lease: Lease) -> bool:
        """See `StateStore`."""
        held = self._held(lease)
        if held is not None:
            held.until = self._clock() + lease.ttl_s
        return held is not None

    async def release(self, lease: Lease) -> None:
        """See `StateStore`."""
        if self._held(lease) is not None:
            del self._leases[lease.tenant, lease.name]

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """See `StateStore`."""
        return self._held(lease) is not None and self._put_all(lease.tenant, puts)

    async def stats(self) -> StoreStats:
        """See `StateStore`."""
        self._expire()
        return StoreStats(
            tuple(
                Usage(tenant, space, len(shelf.entries), shelf.size)
                for (tenant, space), shelf in sorted(self._shelves.items())
            ),
            self._max_bytes,
        )

    async def ping(self) -> None:
        """Removes the expired entries; memory is always connected."""
        self._expire()

    async def aclose(self) -> None:
        """See `StateStore`."""
        await self.purge()

    def _put_all(self, tenant: str, puts: Sequence[Put]) -> bool:
        """Raises StoreUnavailable for values that fit into no empty store, before it changes anything."""
        self._expire()
        sizes = Counter[Space]()
        for put in puts:
            sizes[put.space] += _size(put)
        if sizes.total() > self._max_bytes or any(size > self._room(space) for space, size in sizes.items()):
            raise StoreUnavailable("full", f"{sizes.total()} bytes at once")
        if not all(self._matches(tenant, put) for put in puts):
            return False
        for put in puts:
            self._write(tenant, put)
        self._make_room(sizes)
        return True

    def _matches(self, tenant: str, put: Put) -> bool:
        if put.if_version is None:
            return True
        stored = self._find((tenant, put.space, put.key))
        return (0 if stored is None else stored.entry.version) == put.if_version

    def _write(self, tenant: str, put: Put) -> None:
        name = (tenant, put.space, put.key)
        self._remove(name)
        shelf = self._shelves.setdefault((tenant, put.space), _Shelf())
        number, until = next(self._numbers), self._clock() + put.ttl_s
        stored = _Stored(Entry(put.data, number), until, _size(put), number)
        shelf.entries[put.key] = stored
        shelf.size += stored.size
        self._size += stored.size
        self._entries += 1
        heapq.heappush(self._ends, (until, name))

    def _read(self, name: Name) -> Entry | None:
        stored = self._find(name)
        if stored is None:
            return None
        stored.used = next(self._numbers)
        self._shelves[name[:2]].entries.move_to_end(name[2])
        return stored.entry

    def _find(self, name: Name) -> _Stored | None:
        shelf = self._shelves.get(name[:2])
        stored = None if shelf is None else shelf.entries.get(name[2])
        return stored if stored is not None and stored.until > self._clock() else None

    def _remove(self, name: Name) -> bool:
        shelf = self._shelves.get(name[:2])
        stored = None if shelf is None else shelf.entries.pop(name[2], None)
        if shelf is None or stored is None:
            return False
        shelf.size -= stored.size
        self._size -= stored.size
        self._entries -= 1
        if not shelf.entries:
            del self._shelves[name[:2]]
        return True

    def _names(self) -> Iterator[Name]:
        return ((tenant, space, key) for (tenant, space), shelf in self._shelves.items() for key in shelf.entries)

    def _room(self, space: Space) -> int:
        return self._space_bytes.get(space, self._max_bytes)

    def _make_room(self, written: Mapping[Space, int]) -> None:
        for space in written.keys() & self._space_bytes.keys():
            while sum(self._sizes({space}).values()) > self._room(space):
                self._evict_of({space})
        while self._size > self._max_bytes:
            self._evict_of(None)

    def _sizes(self, spaces: set[Space] | None) -> Counter[str]:
        """Returns the bytes of each tenant in these spaces; None: in all."""
        sizes = Counter[str]()
        for (tenant, space), shelf in self._shelves.items():
            if spaces is None or space in spaces:
                sizes[tenant] += shelf.size
        return sizes

    def _evict_of(self, spaces: set[Space] | None) -> None:
        """Removes an entry of the tenant that has the most bytes in these spaces: the one not used for the longest
        time."""
        [(largest, _)] = self._sizes(spaces).most_common(1)
        (_, key), space = min(
            (shelf.oldest, space)
            for (tenant, space), shelf in self._shelves.items()
            if tenant == largest and (spaces is None or space in spaces)
        )
        self._remove((largest, space, key))
        self._on_evict(space, "full")

    def _expire(self) -> None:
        """Removes the entries whose time has passed."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, name = heapq.heappop(self._ends)
            shelf = self._shelves.get(name[:2])
            stored = None if shelf is None else shelf.entries.get(name[2])
            if stored is None:
                continue
            if stored.until > now:
                # It was extended or written again.
                heapq.heappush(self._ends, (stored.until, name))
            elif self._remove(name):
                self._on_evict(name[1], "expired")
        if len(self._ends) > 2 * self._entries + SPARE:
            self._ends = [
                (stored.until, (tenant, space, key))
                for (tenant, space), shelf in self._shelves.items()
                for key, stored in shelf.entries.items()
            ]
            heapq.heapify(self._ends)

    def _held(self, lease: Lease) -> _HeldLease | None:
        held = self._leases.get((lease.tenant, lease.name))
        return held if held is not None and held.token == lease.token and held.until > self._clock() else None


def _size(put: Put) -> int:
    return OVERHEAD + len(put.key) + len(put.data)
