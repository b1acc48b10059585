"""Stores the states of answers: the bytes of each once, and below each anchor of an answer where they are.

An anchor is changed by compare-and-set, so that workers which keep or drop states at the same time lose none.
"""

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
from gateway.server.state.request_store import RequestStore
from gateway.server.state.store import ABSENT, Entry, Put, Space

SPACE: Final[Space] = "ops"
# So often another worker may come first before a change is given up; the state is then missing, never wrong.
_TRIES: Final = 5


class KeptStates:
    """The states of one tenant's answers, each kept for `ttl_s` seconds after its last use.

    What a request reads is absent where the store fails. The other methods raise StoreUnavailable."""

    def __init__(self, store: RequestStore, ttl_s: float) -> None:
        self._read = store
        self._store = store.store
        self._tenant = store.tenant
        self._ttl_s = ttl_s

    async def variants(self, anchors: Iterable[bytes]) -> Mapping[bytes, tuple[Variant, ...]]:
        """Returns what is known of each anchor."""
        keys = [*dict.fromkeys(anchors)]
        entries = await self._read.get(SPACE, keys)
        return {key: _variants(entry) for key, entry in zip(keys, entries, strict=True)}

    async def states(self, keys: Iterable[bytes]) -> Mapping[bytes, TurnState]:
        """Returns the states that are still there."""
        wanted = [*dict.fromkeys(keys)]
        entries = await self._read.get(SPACE, wanted)
        read = {key: decode_state(entry.data) for key, entry in zip(wanted, entries, strict=True) if entry is not None}
        return {key: state for key, state in read.items() if state is not None}

    async def keep(self, anchors: Sequence[bytes], variant: Variant, data: bytes) -> None:
        """Stores a state and where it is, both or neither."""
        assert variant.state is not None, "a new state has a key"
        state = Put(SPACE, variant.state, data, self._ttl_s)
        for _ in range(_TRIES):
            entries = await self._store.get(self._tenant, SPACE, anchors)
            places = [
                self._changed(anchor, entry, with_variant(_variants(entry), variant))
                for anchor, entry in zip(anchors, entries, strict=True)
            ]
            if await self._store.put(self._tenant, state, *places):
                return

    async def drop(self, anchors: Sequence[bytes], variant: Variant) -> None:
        """Drops a state that its provider has refused, unless another one has taken its place."""
        for anchor in anchors:
            await self._change(anchor, lambda variants: without_variant(variants, variant))

    async def use(self, keys: Sequence[bytes]) -> None:
        """Lets what was used live on."""
        await self._store.extend(self._tenant, SPACE, keys, self._ttl_s)

    async def _change(self, anchor: bytes, change: Callable[[Sequence[Variant]], tuple[Variant, ...]]) -> None:
        for _ in range(_TRIES):
            (entry,) = await self._store.get(self._tenant, SPACE, [anchor])
            before = _variants(entry)
            after = change(before)
            if after == before or await self._store.put(self._tenant, self._changed(anchor, entry, after)):
                return

    def _changed(self, anchor: bytes, entry: Entry | None, variants: Sequence[Variant]) -> Put:
        version = ABSENT if entry is None else entry.version
        return Put(SPACE, anchor, encode_variants(variants), self._ttl_s, version)


def _variants(entry: Entry | None) -> tuple[Variant, ...]:
    return () if entry is None else decode_variants(entry.data)
