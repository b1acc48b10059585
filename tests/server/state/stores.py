"""The stores that the contract holds for. Each opens two handles, as two workers of one gateway have them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from gateway.server.state.memory import MemoryStore
from gateway.server.state.sqlite import SqliteStore
from gateway.server.state.store import EvictionReason, Space, StateStore
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.store import ValkeyStore
from tests.server.process.test_process_identity import OURS, PARENT
from tests.server.state.valkey.servers import PROGRAMS, server

MAX_BYTES: Final = 2**20
Pair: TypeAlias = tuple[StateStore, StateStore]
Evictions: TypeAlias = list[tuple[Space, EvictionReason]]


@asynccontextmanager
async def memory(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """One worker: both handles are the same."""
    store = MemoryStore(MAX_BYTES, lambda *eviction: evictions.append(eviction))
    yield store, store
    await store.aclose()


def on_server(kind: str) -> Callable[[Path, Evictions], AbstractAsyncContextManager[Pair]]:
    """Two clients of a real server of this kind."""

    @asynccontextmanager
    async def opened(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
        async with server(kind, folder) as running:
            address = read_address(running.url)
            mine, other = (ValkeyStore(address, lambda *eviction: evictions.append(eviction)) for _ in range(2))
            async with aclosing(mine), aclosing(other):
                yield mine, other

    return opened


@asynccontextmanager
async def sqlite(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """Two workers: this process and its parent."""

    def opened(holder: str) -> SqliteStore:
        return SqliteStore(folder / "state.db", holder, MAX_BYTES, lambda *eviction: evictions.append(eviction))

    one, two = opened(OURS), opened(PARENT)
    yield one, two
    await one.aclose()
    await two.aclose()


STORES: Final[dict[str, Callable[[Path, Evictions], AbstractAsyncContextManager[Pair]]]] = {
    "memory": memory,
    "sqlite": sqlite,
    **{kind: on_server(kind) for kind in PROGRAMS},
}
# The stores that remove entries by themselves where room is needed.
BOUNDED: Final = ("memory", "sqlite")
