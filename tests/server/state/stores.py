"""The stores that the contract holds for. Each opens two handles, as two workers of one gateway have them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import EvictionReason, Space, StateStore

MAX_BYTES: Final = 2**20
Pair: TypeAlias = tuple[StateStore, StateStore]
Evictions: TypeAlias = list[tuple[Space, EvictionReason]]


@asynccontextmanager
async def memory(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """One worker: both handles are the same."""
    store = MemoryStore(MAX_BYTES, lambda *eviction: evictions.append(eviction))
    yield store, store
    await store.aclose()


STORES: Final[dict[str, Callable[[Path, Evictions], AbstractAsyncContextManager[Pair]]]] = {"memory": memory}
# The stores that remove entries by themselves where room is needed.
BOUNDED: Final = ("memory",)
