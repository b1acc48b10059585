"""Keeps state on a Valkey or Redis server that several machines share.

All that changes or compares something is one script, so that it happens whole or not at all, and in the present epoch
of its tenant: what another machine has forgotten can neither be read nor be written here, from the next call on.
Entries and leases expire by the clock of the server.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from gateway.server.log.logger import LOGGER
from gateway.server.state.store import (
    EVERYONE,
    SPACES,
    Entry,
    EvictionReason,
    Lease,
    OnEvict,
    Put,
    Space,
    StoreStats,
    StoreUnavailable,
    Usage,
)
from gateway.server.state.valkey.address import ServerAddress
from gateway.server.state.valkey.connections import CONNECTIONS, Argument, Connections, Reply
from gateway.server.state.valkey.epochs import Epochs
from gateway.server.state.valkey.names import (
    LABELS_KEY,
    PREFIX,
    Epoch,
    base,
    index_name,
    is_usage,
    record_name,
    sizes_name,
)
from gateway.server.state.valkey.scripts import ACQUIRE, DELETE, EXTEND, GET, LABELS, PUT, RENEW, STATS, SWEEP, Script

OLDEST: Final = (7, 0)

# One tenant may use this share of a server's memory.
TENANT_SHARE: Final = 0.5
# Names in a step through all of them.
STEP: Final = 1000
# What PUT says of the entries that ended or were removed.
REMOVED: Final[Mapping[Reply, tuple[Space, EvictionReason]]] = {
    f"{reason}:{space}".encode(): (space, reason) for space in SPACES for reason in get_args(EvictionReason)
}


class ServerFacts(msgspec.Struct, frozen=True):
    """The protocol version of Redis that the server speaks, and its limit of memory. Empty: it does not say.

    `max_bytes` 0: no limit."""

    version: tuple[int, ...] = ()
    max_bytes: int = 0
    eviction: str = ""

    def faults(self) -> Iterator[str]:
        """Returns a sentence for each fact that breaks a promise of the store."""
        if self.version and self.version < OLDEST:
            yield f"it is Redis {'.'.join(map(str, self.version))}; the gateway's scripts need Redis 7.0 or Valkey"
        if self.max_bytes and self.eviction not in ("", "noeviction"):
            yield (
                f"its maxmemory-policy is {self.eviction}, so that it may remove leases, limits and epochs when it is"
                " full; set it to noeviction, or use a server of its own"
            )


def read_facts(info: bytes) -> ServerFacts:
    """Returns the facts in the reply to INFO; a field that it lacks stays unknown."""
    fields = dict(re.findall(rb"^(\w+):(.*?)\r?$", info, re.MULTILINE))
    version = re.findall(r"\d{1,6}", fields.get(b"redis_version", b"").decode("ascii", "replace"))
    limit = fields.get(b"maxmemory", b"")
    return ServerFacts(
        tuple(map(int, version[:3])),
        int(limit[:18]) if limit.isdigit() else 0,
        fields.get(b"maxmemory_policy", b"").decode("ascii", "replace"),
    )


class ValkeyStore:
    """See `StateStore`. It connects when it is first used. Where the server's memory has a limit, a tenant that uses
    half of it loses the entries that would expire first."""

    def __init__(self, address: ServerAddress, on_evict: OnEvict) -> None:
        self.name = str(address)
        self.at_once = CONNECTIONS
        self._connections = Connections(address)
        self._epochs = Epochs(self._connections)
        self._on_evict = on_evict
        self._facts: ServerFacts | None = None

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """See `StateStore`."""
        found = await self._epochs.run(tenant, lambda epoch: (GET, epoch.names(space, keys), ())) or []
        if len(found) != len(keys):
            raise StoreUnavailable("invalid", f"{len(found)} values for {len(keys)} keys")
        return [_entry(value) for value in found]

    async def put(self, tenant: str, *puts: Put) -> bool:
        """See `StateStore`."""
        return await self._put_all(tenant, puts, None)

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """See `StateStore`."""
        await self._epochs.run(
            tenant, lambda epoch: (EXTEND, _listed(epoch, space, keys), (epoch.base, _milliseconds(ttl_s)))
        )

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """See `StateStore`."""
        await self._epochs.run(tenant, lambda epoch: (DELETE, _listed(epoch, space, keys), (epoch.base,)))

    async def epoch(self, tenant: str) -> bytes:
        """See `StateStore`."""
        return (await self._epochs.present(tenant)).record

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """See `StateStore`."""
        return await self._epochs.forgotten(tenants)

    async def forget(self, tenant: str) -> None:
        """See `StateStore`. Deletes the entries, too; those that a failure leaves behind expire."""
        previous = await self._epochs.replace(tenant)
        while previous is not None and await self._sweep(previous.base):
            pass

    async def purge(self) -> None:
        """See `StateStore`. The epoch of `EVERYONE` begins before anything is deleted."""
        await self._epochs.replace(EVERYONE)
        stays = record_name(EVERYONE)
        cursor: bytes | None = b"0"
        while cursor is not None:
            cursor, names = await self._scan(cursor)
            if found := [name for name in names if name != stays and not is_usage(name)]:
                await self._connections.command("UNLINK", *found)

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """See `StateStore`."""
        found = await self._epochs.run(tenant, lambda epoch: (ACQUIRE, [epoch.lease(name)], (_milliseconds(ttl_s),)))
        return None if found is None else Lease(tenant, name, _integer(found), ttl_s)

    async def renew(self, lease: Lease) -> bool:
        """See `StateStore`."""
        return await self._renew(lease, _milliseconds(lease.ttl_s))

    async def release(self, lease: Lease) -> None:
        """See `StateStore`."""
        await self._renew(lease, 0)

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """See `StateStore`."""
        return await self._put_all(lease.tenant, puts, lease)

    async def stats(self) -> StoreStats:
        """See `StateStore`."""
        usage: list[Usage] = []
        for label in map(_bytes, (await self._connections.call(LABELS, (LABELS_KEY,)))[1:]):
            sizes = await self._sizes(label)
            tenant = label.partition(b"}")[0].removeprefix(b"{").decode("ascii", "replace")
            usage += [
                Usage(tenant, space, entries, sizes[f"{space}:bytes"])
                for space in SPACES
                if (entries := sizes[f"{space}:entries"])
            ]
        facts = await self._read_facts()
        return StoreStats(tuple(usage), facts.max_bytes or None)

    async def ping(self) -> None:
        """See `StateStore`. Warns of what the server should not be set to."""
        await self._read_facts()

    async def aclose(self) -> None:
        """See `StateStore`."""
        await self._connections.aclose()

    async def _put_all(self, tenant: str, puts: Sequence[Put], lease: Lease | None) -> bool:
        facts = self._facts or await self._read_facts()
        most = int(facts.max_bytes * TENANT_SHARE)

        def call(epoch: Epoch) -> tuple[Script, Sequence[bytes], Sequence[Argument]]:
            held = (b"", b"") if lease is None else (epoch.lease(lease.name), b"%d" % lease.token)
            names = [name for put in puts for name in epoch.names(put.space, (put.key,))]
            values = [part for put in puts for part in (_condition(put), _milliseconds(put.ttl_s), put.data)]
            keys = [LABELS_KEY, index_name(epoch.base), sizes_name(epoch.base), held[0], *names]
            return PUT, keys, (epoch.base, most, held[1], *values)

        removed = await self._epochs.run(tenant, call)
        for found in removed or ():
            if found in REMOVED:
                self._on_evict(*REMOVED[found])
        return removed is not None

    async def _renew(self, lease: Lease, ttl: int) -> bool:
        return (
            await self._epochs.run(lease.tenant, lambda epoch: (RENEW, [epoch.lease(lease.name)], (lease.token, ttl)))
            is not None
        )

    async def _sweep(self, base: bytes) -> bool:
        """Deletes some entries of an ended epoch. Returns whether there are more."""
        reply = await self._connections.call(SWEEP, (LABELS_KEY, index_name(base), sizes_name(base)), base)
        return _integer(reply[1:]) > 0

    async def _sizes(self, label: bytes) -> Counter[str]:
        start = base(label)
        _, *parts = await self._connections.call(STATS, (index_name(start), sizes_name(start)), start)
        texts = [_bytes(part).decode("ascii", "replace") for part in parts]
        return Counter({field: int(value) for field, value in zip(texts[::2], texts[1::2], strict=False)})

    async def _scan(self, cursor: bytes) -> tuple[bytes | None, list[bytes]]:
        """Returns the next cursor, None at the end, and some names."""
        found: Any = await self._connections.command("SCAN", cursor, "MATCH", PREFIX + b"*", "COUNT", STEP)
        match found:
            case [bytes(cursor), [*names]]:
                return None if cursor == b"0" else cursor, names
            case _:
                raise StoreUnavailable("invalid", "a reply to SCAN that is none")

    async def _read_facts(self) -> ServerFacts:
        facts = read_facts(await self._connections.command("INFO"))
        if facts != self._facts:
            for fault in facts.faults():
                LOGGER.warning("the store %s does not keep its promises: %s", self.name, fault)
        self._facts = facts
        return facts


_VERSION: Final = re.compile(rb"(\d{1,18}):")


def _listed(epoch: Epoch, space: Space, keys: Sequence[bytes]) -> list[bytes]:
    return [index_name(epoch.base), sizes_name(epoch.base), *epoch.names(space, keys)]


def _condition(put: Put) -> bytes:
    return b"" if put.if_version is None else b"%d" % put.if_version


def _milliseconds(seconds: float) -> int:
    return max(1, round(1000 * seconds))


def _entry(value: Reply) -> Entry | None:
    """Returns an entry; None for a value that no gateway has written."""
    if not isinstance(value, bytes):
        return None
    found = _VERSION.match(value)
    return None if found is None else Entry(value[found.end() :], int(found[1]))


def _integer(found: Sequence[Reply]) -> int:
    """Returns the only part of a reply: a whole number, as a number or in digits."""
    match found:
        case [int(number)]:
            return number
        case [bytes(digits)] if digits.isdigit():
            return int(digits[:18])
        case _:
            raise StoreUnavailable("invalid", "a reply that is no number")


def _bytes(part: Reply) -> bytes:
    if not isinstance(part, bytes):
        raise StoreUnavailable("invalid", "a reply of another kind")
    return part
