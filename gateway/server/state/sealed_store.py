"""Seals the values of a store on disk or on a server: they are compressed, encrypted or checked, and bound to tenant,
epoch and name.

A sealed value is `form | flags | key id | body`. Each form has its own body: `ChecksumSeal` adds a checksum,
`EncryptedSeal` (encryption.py) encrypts. Both detect a damaged value and one that belongs to another name. A value that
cannot be read is a miss, is counted, and stays: another version of the gateway or one with another key may have written
it.
"""

import asyncio
import hashlib
import hmac
import zlib
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from gateway.server.state.store import Entry, Lease, Put, Space, StateStore, StoreStats

# Below this, zlib saves less than its call costs.
COMPRESSED_FROM: Final = 1024
# No value that a gateway writes is larger, so that a forged one cannot fill the memory.
LARGEST: Final = 64 * 2**20
HEADER: Final = 6
# The fewest characters of an operator's key: 128 bits, written in hexadecimal digits.
SHORTEST_KEY: Final = 32
NO_KEY: Final = bytes(4)
_ZLIB: Final = 1
_DIGEST: Final = 16

UnreadableReason: TypeAlias = Literal["form", "key", "seal"]

# From this size on, compression would hold up the event loop for about a millisecond.
THREAD_FROM: Final = 64 * 1024

# Called for each value that could not be read.
OnUnreadable: TypeAlias = Callable[[Space, UnreadableReason], None]


class Unreadable(Exception):
    """A stored value that this gateway cannot read: of an unknown form, under an unknown key, or damaged."""

    def __init__(self, reason: UnreadableReason) -> None:
        super().__init__(reason)
        self.reason: Final = reason


class Scope(NamedTuple):
    """Whose values these are: the tenant, and the salt of its present epoch (32 bytes; only encryption uses it)."""

    tenant: str
    salt: bytes


class Seal(Protocol):
    """Seals and opens the values of a store. `name` is the full name of the entry in the store."""

    def seal(self, scope: Scope, name: bytes, data: bytes) -> bytes:
        """Returns the bytes to store."""

    def open(self, scope: Scope, name: bytes, sealed: bytes) -> bytes:
        """Returns the data that was sealed under this name. Raises Unreadable."""


class ChecksumSeal:
    """Detects damage, and keeps no secret: whoever reads the store reads the values. See `Seal`."""

    FORM: Final = 1

    def seal(self, scope: Scope, name: bytes, data: bytes) -> bytes:
        """See `Seal`."""
        flags, packed = pack(data)
        header = bytes((self.FORM, flags)) + NO_KEY
        return header + _checksum(scope, bound(name, header), packed) + packed

    def open(self, scope: Scope, name: bytes, sealed: bytes) -> bytes:
        """See `Seal`."""
        if not sealed or sealed[0] != self.FORM:
            raise Unreadable("form")
        header, found, packed = sealed[:HEADER], sealed[HEADER : HEADER + _DIGEST], sealed[HEADER + _DIGEST :]
        if not hmac.compare_digest(found, _checksum(scope, bound(name, header), packed)):
            raise Unreadable("seal")
        return unpack(header[1], packed)


def pack(data: bytes) -> tuple[int, bytes]:
    """Returns the flags of a header, and the data, compressed where that makes it smaller."""
    if len(data) >= COMPRESSED_FROM:
        packed = zlib.compress(data, 1)
        if len(packed) < len(data):
            return _ZLIB, packed
    return 0, data


def unpack(flags: int, packed: bytes) -> bytes:
    """Returns the data again. Raises Unreadable for unknown flags, and for what `pack` did not write."""
    if flags == 0:
        return packed
    if flags != _ZLIB:
        raise Unreadable("form")
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, LARGEST)
    except zlib.error:
        raise Unreadable("seal") from None
    if not unpacker.eof:
        raise Unreadable("seal")
    return data


def bound(name: bytes, header: bytes) -> bytes:
    """Returns the bytes that a seal covers besides the data: no other name and header give the same bytes."""
    return len(name).to_bytes(4, "big") + name + header


def _checksum(scope: Scope, covered: bytes, packed: bytes) -> bytes:
    tenant = scope.tenant.encode()
    digest = hashlib.blake2b(len(tenant).to_bytes(4, "big") + tenant + covered, digest_size=_DIGEST)
    digest.update(packed)
    return digest.digest()


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

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """See `StateStore`."""
        return await self._store.forgotten(tenants)

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
