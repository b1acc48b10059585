"""Runs scripts in the present epoch of a tenant, and knows these epochs.

Every script compares the record of the epoch, so an epoch that another machine has ended is noticed by the next call.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeGuard

from gateway.server.state.store import EPOCH_BYTES, StoreUnavailable, first_record, forgotten_at, next_record
from gateway.server.state.valkey.connections import Argument, Connections, Reply
from gateway.server.state.valkey.names import Epoch, record_name, tenant_name
from gateway.server.state.valkey.scripts import BEGIN, FORGET, RECORDS, Script

# An epoch that ends during a call is learned and the call made again; a tenant is not forgotten three times meanwhile.
ATTEMPTS: Final = 3
# How long an epoch may be used without a word of the server.
FRESH_S: Final = 5.0

# The script, its keys besides the record, and its arguments.
EpochCall: TypeAlias = Callable[[Epoch], tuple[Script, Sequence[bytes], Sequence[Argument]]]


class Epochs:
    """The epochs that this process knows, each with the time at which the server was last asked about it."""

    def __init__(self, connections: Connections, clock: Callable[[], float] = time.monotonic) -> None:
        self._connections = connections
        self._clock = clock
        self._known: dict[str, tuple[Epoch, float]] = {}

    async def run(self, tenant: str, call: EpochCall) -> list[Reply] | None:
        """Returns the reply of the script after `ok`; None when it refused (`no`). Raises StoreUnavailable."""
        record = record_name(tenant)
        for _ in range(ATTEMPTS):
            epoch = self._known[tenant][0] if tenant in self._known else await self._begin(tenant)
            script, keys, arguments = call(epoch)
            asked = self._clock()
            status, *found = await self._connections.call(script, (record, *keys), epoch.id, *arguments)
            if status != b"epoch":
                self._known[tenant] = (epoch, asked)
                return _outcome(status, found)
            self._learn(tenant, found, asked)
        raise StoreUnavailable("invalid", "the epoch of a tenant changes all the time")

    async def present(self, tenant: str) -> Epoch:
        """Returns the epoch that the server has confirmed within `FRESH_S`. Raises StoreUnavailable."""
        epoch, asked = self._known.get(tenant, (None, 0.0))
        return epoch if epoch is not None and asked > self._clock() - FRESH_S else await self._begin(tenant)

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """Returns when each of the tenants was forgotten, in seconds since 1970; 0.0: never. Raises
        StoreUnavailable."""
        status, *records = await self._connections.call(RECORDS, [record_name(tenant) for tenant in tenants])
        if status != b"ok" or len(records) != len(tenants):
            raise StoreUnavailable("invalid", f"{len(records)} records for {len(tenants)} tenants")
        return [forgotten_at(record) if _is_record(record) else 0.0 for record in records]

    async def replace(self, tenant: str) -> Epoch | None:
        """Begins a new epoch, and returns the previous one, if there was one. Raises StoreUnavailable."""
        asked, record = self._clock(), next_record(time.time())
        _, previous = await self._connections.call(FORGET, (record_name(tenant),), record)
        self._learn(tenant, [record], asked)
        return Epoch(tenant_name(tenant), previous) if _is_record(previous) else None

    async def _begin(self, tenant: str) -> Epoch:
        asked = self._clock()
        _, *found = await self._connections.call(BEGIN, (record_name(tenant),), first_record())
        epoch = self._learn(tenant, found, asked)
        if epoch is None:
            raise StoreUnavailable("invalid", "a record of an epoch that is none")
        return epoch

    def _learn(self, tenant: str, found: Sequence[Reply], asked: float) -> Epoch | None:
        self._known.pop(tenant, None)
        if not found or not _is_record(found[0]):
            return None
        epoch = Epoch(tenant_name(tenant), found[0])
        self._known[tenant] = (epoch, asked)
        return epoch


def _is_record(found: Reply) -> TypeGuard[bytes]:
    return isinstance(found, bytes) and len(found) == EPOCH_BYTES


def _outcome(status: Reply, found: list[Reply]) -> list[Reply] | None:
    match status:
        case b"ok":
            return found
        case b"no":
            return None
        case b"full":
            raise StoreUnavailable("full", "more than one tenant may store")
        case _:
            raise StoreUnavailable("invalid", "an unknown outcome")
