"""Stores the states of answers: the bytes of each once, and below each lookup key of an answer the keys of its states.

What stands below a lookup key is changed by compare-and-set, so that workers which add or delete states at the same
time lose none.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gateway.memory.provider_state.cached_state import (
    TurnState,
    Variant,
    decode_state,
    decode_variants,
    encode_variants,
    with_variant,
    without_variant,
)
from gateway.server.state.guarded_store import Write
from gateway.server.state.store import ABSENT, Entry, Put, Space, StoreUnavailable
from gateway.server.state.stores import RequestStore
from gateway.server.telemetry.metrics import Metrics

SPACE: Final[Space] = "ops"
# A request waits so long for the writes of the last answers to its tenant.
WRITES_S: Final = 0.02
# So often another worker may come first before a change is given up; the state is then missing, never wrong.
_TRIES: Final = 5


class CachedStates:
    """The states of one tenant's answers, each stored for `ttl_s` seconds after its last use.

    What a request reads is absent where the store fails. The other methods raise StoreUnavailable."""

    def __init__(self, store: RequestStore, ttl_s: float) -> None:
        self._read = store
        self._store = store.store
        self._tenant = store.tenant
        self._ttl_s = ttl_s

    async def variants(self, lookup_keys: Iterable[bytes]) -> Mapping[bytes, tuple[Variant, ...]]:
        """Returns the variants below each lookup key."""
        keys = [*dict.fromkeys(lookup_keys)]
        entries = await self._read.get(SPACE, keys)
        return {key: _variants(entry) for key, entry in zip(keys, entries, strict=True)}

    async def states(self, keys: Iterable[bytes]) -> Mapping[bytes, TurnState]:
        """Returns the states that are still there."""
        wanted = [*dict.fromkeys(keys)]
        entries = await self._read.get(SPACE, wanted)
        read = {key: decode_state(entry.data) for key, entry in zip(wanted, entries, strict=True) if entry is not None}
        return {key: state for key, state in read.items() if state is not None}

    async def add(self, lookup_keys: Sequence[bytes], variant: Variant, data: bytes) -> None:
        """Stores a state and its key below each lookup key, all or nothing."""
        assert variant.state is not None, "a new state has a key"
        state = Put(SPACE, variant.state, data, self._ttl_s)
        for _ in range(_TRIES):
            entries = await self._store.get(self._tenant, SPACE, lookup_keys)
            changed = [
                self._changed(key, entry, with_variant(_variants(entry), variant))
                for key, entry in zip(lookup_keys, entries, strict=True)
            ]
            if await self._store.put(self._tenant, state, *changed):
                return

    async def delete(self, lookup_keys: Sequence[bytes], variant: Variant) -> None:
        """Deletes a state that its provider has refused, unless another one has taken its place."""
        for key in lookup_keys:
            await self._change(key, lambda variants: without_variant(variants, variant))

    async def extend(self, keys: Sequence[bytes]) -> None:
        """Extends the time to live of these states and lookup keys, which were used."""
        await self._store.extend(self._tenant, SPACE, keys, self._ttl_s)

    async def _change(self, key: bytes, change: Callable[[Sequence[Variant]], tuple[Variant, ...]]) -> None:
        for _ in range(_TRIES):
            (entry,) = await self._store.get(self._tenant, SPACE, [key])
            before = _variants(entry)
            after = change(before)
            if after == before or await self._store.put(self._tenant, self._changed(key, entry, after)):
                return

    def _changed(self, key: bytes, entry: Entry | None, variants: Sequence[Variant]) -> Put:
        version = ABSENT if entry is None else entry.version
        return Put(SPACE, key, encode_variants(variants), self._ttl_s, version)


class RequestStates:
    """The states of the tenant of one request, which are written in the background. `writing` counts the running writes
    by tenant; `labels` are those of the metric."""

    def __init__(
        self,
        store: RequestStore,
        ttl_s: float,
        writing: Counter[str],
        metrics: Metrics,
        labels: tuple[str, str],
    ) -> None:
        self.cache = CachedStates(store, ttl_s)
        self._store = store
        self._writing = writing
        self._metrics = metrics
        self._labels = labels

    async def secret(self) -> bytes | None:
        """Returns the key of the tenant's digests, after the writes of its last answers; None: the store fails."""
        if self._writing[self._store.tenant]:
            try:
                async with asyncio.timeout(WRITES_S):
                    await self._store.store.written()
            except TimeoutError:
                pass
        return await self._store.epoch()

    def later(self, write: Write) -> bool:
        """Queues a write behind the answer. Returns False, and drops the write, when too many wait."""
        queued = self._store.store.write_later(lambda: self._counted(write))
        if queued:
            self._writing[self._store.tenant] += 1
        return queued

    async def now(self, write: Write) -> StoreUnavailable | None:
        """Runs a write before the end of the answer, which waits for the store no longer than a request. Returns the
        failure of a write that is not confirmed."""
        self._writing[self._store.tenant] += 1
        return await self._store.store.write_now(lambda: self._counted(write), self._store.deadline_s)

    async def epoch(self) -> bytes:
        """Returns the key of the tenant's digests for a write. Raises StoreUnavailable."""
        return await self._store.store.epoch(self._store.tenant)

    def count(self, outcome: str) -> None:
        """Counts a turn or an answer."""
        self._metrics.replays.inc(*self._labels, outcome)

    async def _counted(self, write: Write) -> None:
        """Runs a write that is counted as running until it ends."""
        tenant = self._store.tenant
        try:
            await write()
        finally:
            self._writing[tenant] -= 1
            if not self._writing[tenant]:
                del self._writing[tenant]


def _variants(entry: Entry | None) -> tuple[Variant, ...]:
    return () if entry is None else decode_variants(entry.data)
